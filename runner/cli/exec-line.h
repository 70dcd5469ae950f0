/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of holt exec. */
#pragma once

#include "cli/options.h"

enum { KEEP_HEAD, KEEP_TAIL, KEEP_UNSAID };
extern const char *const exec_keep_names[];

typedef struct ExecOptions {
        const char *shell, *cwd, *timeout, *output, *report;
        StrList env, tools;
        unsigned keep; /* KEEP_... */
        bool detach, json;
} ExecOptions;

typedef struct ExecLine {
        ExecOptions options;
        OptionResult words;
        const char *name;
        const char *const *command; /* what is to run, of --shell too */
        const char *shell_words[4];
        uint64_t timeout, output; /* usec, bytes */
        bool captured;            /* its output goes through the keeper, which keeps a part */
} ExecLine;

#define EXEC_LINE_NONE                                                                             \
        {                                                                                          \
                .options = {.keep = KEEP_UNSAID }                                                  \
        }

extern const OptionSyntax exec_line_syntax;

/* Options before the session's name and behind it, then the command; strings are argv's. Where
 * line->words.help, nothing else is said. What is known where it fails is there: a report tells of
 * it. 0 or a negative errno. */
int exec_line_parse(ExecLine *line, int argc, char **argv, Error *reterr);
