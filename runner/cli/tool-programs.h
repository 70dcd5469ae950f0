/* SPDX-License-Identifier: Apache-2.0 */
/* Judges programs that make a command from their arguments or their input: shells, interpreters,
 * and programs such as env(1) that start another one.
 *
 * The paths in a tool's command are judged word by word (cli/tool-command.h). That is not enough if
 * a shell builds a path from a word. It is not enough either if the shell reads its program from
 * stdin, which is the payload of the code inside. So a table lists these programs by name, with the
 * options that each may have.
 *
 * The table cannot be complete. Any program may start others, and get their names from a file, its
 * environment or a word. If the caller makes a program outside the workspace a tool, the caller is
 * responsible for it (SECURITY.md, "Programs of tools"). */
#pragma once

#include "cli/tool-words.h"

/* Checks the words of a command. program is the path that the first word leads to through all
 * symlinks; it may have another name. *ret_directories: a program of the command looks for code
 * below a directory that a word names, such as make -C DIR. Returns 0, or -EPERM with an
 * ERROR_POLICY. */
int tool_programs_check(const char *tool, const ToolWords *words, const char *program,
                        bool *ret_directories, Error *reterr);
