/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of --tool NAME=COMMAND, which the calling session must not be able to change.
 *
 * Theory of operation. A tool runs on the host, as the caller. If the session could write the
 * tool's program, code inside would run on the host at the next call. So holt must know which
 * program a command runs, and no shell takes part. COMMAND is split into words (cli/tool-words.h),
 * and the program of the first word is executed with them. Commands that hand their words to a
 * shell are refused (cli/tool-programs.h). So is each word that leads to a file that the session
 * can write (cli/tool-paths.h).
 *
 * All of this is done when the tools are registered. It is done again at each call, because the
 * host may have replaced a file or a symlink meanwhile. The program is opened once at a call. If it
 * is a binary, that open file is executed. A script is executed by its path: the session cannot
 * change the path, and scripts need it to find the files beside them.
 *
 * A tool starts in "/". So a relative path that holt has overlooked here leads nowhere. The tool's
 * environment has only a few of the caller's variables. */
#pragma once

#include "base/error.h"
#include "base/strings.h"

typedef struct ToolCommands ToolCommands;

/* Reads each "NAME=COMMAND" of specs and checks that session cannot write its program and files;
 * ignores other specs. specs is borrowed as long as *ret is used. Warns on stderr if the session
 * can write directories from which programs commonly load modules or settings.
 *
 * Returns 0 or a negative errno:
 * - -EPERM with an ERROR_POLICY: the session could change the command
 * - -EINVAL with an ERROR_USAGE: only a shell understands the command */
int tool_commands_new(const char *session, const StrList *specs, ToolCommands **ret, Error *reterr);
/* Returns NULL. commands may be NULL. */
ToolCommands *tool_commands_free(ToolCommands *commands);

/* A command that is ready to be executed. */
typedef struct ToolCommand {
        int fd;     /* O_PATH fd of the program */
        char *path; /* absolute path of the program */
        bool by_fd; /* the program is a binary, so it is executed by fd */
        StrList words, env;
} ToolCommand;

#define TOOL_COMMAND_NONE ((ToolCommand){ .fd = FD_NONE })
void tool_command_clear(ToolCommand *command);

/* Checks the command of a tool again, for one call. The caller owns *ret. Returns -ENOENT if the
 * tool does not exist, or another errno of tool_commands_new(). */
int tool_commands_prepare(const ToolCommands *commands, const char *tool, ToolCommand *ret,
                          Error *reterr);
/* Executes the command, in the child, in the tool's working directory. Returns only if it fails: a
 * negative errno of execve(2). */
int tool_command_execute(const ToolCommand *command);
