/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that make a command out of their arguments or their input: shells, interpreters, and
 * programs such as env(1) that start another one.
 *
 * The paths in a tool's command are judged word by word (cli/tool-command.h). That says nothing if
 * a shell builds a path from a word, or reads its program from stdin, which is the payload of the
 * code inside. So the programs in a table are known by their names, and they may have only the
 * options that the table gives them.
 *
 * The table can't be complete. Any program may start others, whose names it gets from a file, its
 * environment or a word. What a program outside the workspace does by itself is up to the caller
 * who named it as a tool (SECURITY.md, "Programs of tools"). */
#pragma once

#include "cli/tool-words.h"

/* Checks the words of a command. program is the path that the first word leads to through all
 * symlinks, which may have another name. *ret_directories: whether a program of the command looks
 * for code below a directory that a word names, such as make -C DIR. 0, or -EPERM with an
 * ERROR_POLICY. */
int tool_programs_check(const char *tool, const ToolWords *words, const char *program,
                        bool *ret_directories, Error *reterr);
