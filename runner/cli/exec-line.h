/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of holt exec. */
#pragma once

#include "cli/options.h"

enum { KEEP_HEAD, KEEP_TAIL, KEEP_UNSAID };
extern const char *const exec_keep_names[];

typedef struct ExecOptions {
        const char *shell, *cwd, *timeout, *output, *report;
        StrList env, env_files, tools;
        unsigned keep; /* one of KEEP_... */
        bool detach, json, ask;
} ExecOptions;

typedef struct ExecLine {
        ExecOptions options;
        OptionResult words;
        const char *name;
        StrList env;                /* variables to set, as ask_write_env() takes them */
        const char *const *command; /* borrowed: argv of the command to run, also with --shell */
        const char *shell_words[4];
        uint64_t timeout, output; /* usec; bytes */
        bool captured;            /* the keeper reads the command's output and keeps a part of it */
} ExecLine;

#define EXEC_LINE_NONE                                                                             \
        {                                                                                          \
                .options = {.keep = KEEP_UNSAID }                                                  \
        }

extern const OptionSyntax exec_line_syntax;

/* Parses the options before and after the session's name, then the command. The strings in *line
 * belong to argv. If line->words.help is set, the other fields are undefined. On failure, *line
 * holds what was parsed so far, for the report. Returns 0 or a negative errno. */
int exec_line_parse(ExecLine *line, int argc, char **argv, Error *reterr);
