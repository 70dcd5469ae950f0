/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of --tool NAME=COMMAND: made safe from the session that calls them.
 *
 * Theory of operation. A tool runs on the host, as the caller. If the session could write the
 * tool's program, code inside would run on the host at the next call. So holt has to know what a
 * command runs, and no shell takes part: COMMAND is split into words (cli/tool-words.h), and the
 * first word's program is executed with them. Commands that hand their words to a shell are refused
 * (cli/tool-programs.h), and so is each word that leads to what the session can write
 * (cli/tool-paths.h).
 *
 * All of this is done when the tools are registered, and again at each call, since the host may
 * have replaced a file or a symlink meanwhile. The program is opened once at a call. If it is a
 * binary, that open file is executed. A script is executed by its path, which the session can't
 * change, and which scripts need to find the files beside them.
 *
 * A tool starts in "/", so that a relative path which is not recognised here finds nothing, and its
 * environment has only a few of the caller's variables. */
#pragma once

#include "base/error.h"
#include "base/strings.h"

typedef struct ToolCommands ToolCommands;

/* Takes in each "NAME=COMMAND" of specs, checked against what session can write; other specs are
 * passed over. specs is borrowed as long as *ret is used. Warns on stderr if the session can write
 * directories that programs commonly load modules or settings from. 0; -EPERM with an ERROR_POLICY
 * for a command that the session could change; -EINVAL with an ERROR_USAGE for a command that only
 * a shell understands; or another negative errno. */
int tool_commands_new(const char *session, const StrList *specs, ToolCommands **ret, Error *reterr);
/* NULL is legal; returns NULL. */
ToolCommands *tool_commands_free(ToolCommands *commands);

/* A command that is ready to be executed. */
typedef struct ToolCommand {
        int fd;     /* O_PATH of the program */
        char *path; /* of the program, absolute */
        bool by_fd; /* a binary: its path does not matter any more */
        StrList words, env;
} ToolCommand;

#define TOOL_COMMAND_NONE ((ToolCommand){ .fd = FD_NONE })
void tool_command_clear(ToolCommand *command);

/* Checks the command of a tool again, for one call. *ret is the caller's. -ENOENT if there is no
 * such tool, or any other errno of tool_commands_new(). */
int tool_commands_prepare(const ToolCommands *commands, const char *tool, ToolCommand *ret,
                          Error *reterr);
/* In the child, in the working directory of the tool. Returns only if it fails: a negative errno of
 * execve(2). */
int tool_command_execute(const ToolCommand *command);
