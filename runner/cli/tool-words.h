/* SPDX-License-Identifier: Apache-2.0 */
/* Splits the COMMAND of --tool NAME=COMMAND into words, as a shell would, without a shell's
 * expansions.
 *
 * It understands single quotes, double quotes, backslashes, and "~" or "~/" at the start of a word.
 * It refuses everything else that a shell would act on: variables, globs, pipes, redirections,
 * lists, comments and assignments. So a command starts one program, and each of its words is known
 * before the program starts. */
#pragma once

#include "base/strings.h"

enum { TOOL_WORDS_MAX = 4096 }; /* number of words in one command */

typedef struct ToolWord {
        char *text;
        bool plain; /* the word had no quotes and no backslash */
} ToolWord;

typedef struct ToolWords {
        ToolWord *items;
        size_t count;
} ToolWords;

void tool_words_clear(ToolWords *words);

/* Splits command. tool is the tool's name, for messages. home replaces "~" and may be NULL. The
 * caller owns *ret, which has at least one word. Returns 0, -EINVAL with an ERROR_USAGE, or
 * -ENOMEM. */
int tool_words_split(const char *tool, const char *command, const char *home, ToolWords *ret,
                     Error *reterr);
