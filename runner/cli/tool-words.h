/* SPDX-License-Identifier: Apache-2.0 */
/* Splits the COMMAND of --tool NAME=COMMAND into words, as a shell would, without its expansions.
 *
 * Single quotes, double quotes, backslashes, and "~" or "~/" at the start of a word are understood.
 * Everything else that a shell would act on is refused: variables, globs, pipes, redirections,
 * lists, comments and assignments. A command therefore starts one program, and each of its words is
 * known before the program starts. */
#pragma once

#include "base/strings.h"

enum { TOOL_WORDS_MAX = 4096 }; /* of one command */

typedef struct ToolWord {
        char *text;
        bool plain; /* without quotes or a backslash */
} ToolWord;

typedef struct ToolWords {
        ToolWord *items;
        size_t count;
} ToolWords;

void tool_words_clear(ToolWords *words);

/* tool is the tool's name, for messages. home replaces "~" and may be NULL. *ret has at least one
 * word and is the caller's. 0, -EINVAL with an ERROR_USAGE, or -ENOMEM. */
int tool_words_split(const char *tool, const char *command, const char *home, ToolWords *ret,
                     Error *reterr);
