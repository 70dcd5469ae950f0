/* SPDX-License-Identifier: Apache-2.0 */
/* Parses command lines by tables: a verb's own options, and those of the policy's fields
 * (policy_fields[]).
 *
 * "--name value" and "--name=value" mean the same; "--" ends the options. Names cannot be
 * shortened, and one-letter options cannot be combined. Policy options are only noted here, and
 * options_apply() applies them later, because every --policy takes effect before them, no matter
 * where it is written. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/strings.h"
#include "policy/policy.h"

typedef enum OptionKind {
        OPTION_BOOL,   /* bool, set to true; takes no argument */
        OPTION_STRING, /* const char *, borrowed from argv; never empty; the last one counts */
        OPTION_LIST,   /* StrList, to which each value is added */
        OPTION_ENUM,   /* unsigned, an index of names[] */
        OPTION_KIND_MAX,
} OptionKind;

typedef struct Option {
        const char *name; /* "--report" */
        const char *arg;  /* name of the value in the help, such as "FILE"; NULL for OPTION_BOOL */
        const char *help; /* one line of help */
        OptionKind kind;
        size_t offset;            /* offset in the struct that options_parse() fills */
        const char *const *names; /* for OPTION_ENUM; NULL-terminated */
} Option;

/* The command line of a verb. */
typedef struct OptionSyntax {
        const char *verb;    /* "run", "policy show" */
        const char *usage;   /* "[OPTIONS] [--] [COMMAND [ARG...]]" */
        const char *summary; /* says what the verb does, in the help; lines are separated by '\n' */
        const Option *options;
        size_t options_count;
        bool session;      /* the policy is a session's */
        bool policy;       /* the verb takes --policy and the options of the policy's fields */
        bool operands;     /* the verb takes operands, between and after the options */
        bool operand_ends; /* the first operand ends the options, and the rest is a command */
        const char *help_epilog; /* last lines of the help, or NULL */
} OptionSyntax;

/* An option of a policy field that is not applied yet. */
typedef struct OptionWord {
        const PolicyField *field;
        const char *value; /* borrowed from argv or owned; NULL if the option takes none */
        char *owned;       /* the value, if it is not a word of argv */
} OptionWord;

typedef struct OptionResult {
        bool help; /* -h or --help was given; nothing after it was parsed */
        /* The value of each --policy, in order; NULL-terminated, borrowed from argv. */
        const char **policies;
        size_t policies_count;
        bool no_config;    /* --no-config was given */
        StrList env_files; /* the value of each --env-file, in order */
        OptionWord *words; /* in the order of the command line */
        size_t words_count;
        const char **operands; /* NULL-terminated; borrowed from argv */
        size_t operands_count;
} OptionResult;

void options_clear(OptionResult *result);

/* Parses argv[1] to argv[argc - 1]; argv[0] is the verb and is ignored.
 *
 * target is the struct that syntax->options point into, zeroed or with defaults. It may be NULL if
 * syntax has no options. The caller owns the OPTION_LISTs in it, even after a failure.
 *
 * Returns 0, -EINVAL with an ERROR_USAGE, or -ENOMEM. The error names an unknown option and the
 * nearest one, a missing or unexpected value, or an unexpected operand. On failure, *ret is not
 * written. */
int options_parse(const OptionSyntax *syntax, int argc, const char *const *argv, void *target,
                  OptionResult *ret, Error *reterr);

/* Applies the noted policy options in order, with the caller's authority. Returns the values of
 * policy_set(). */
int options_apply(const OptionResult *result, Policy *policy, Error *reterr);

/* Makes the policy of a command line without policy files: starts from the presets of --policy, or
 * from POLICY_PRESET_DEFAULT, and applies the options. Returns 0, -EINVAL for a policy file
 * (policy-files.h reads those), or the errors of policy_preset() and policy_set(). */
int options_policy(const OptionResult *result, Policy *policy, Error *reterr);

/* Returns whether the verb has an option of this name. *ret_arg is the name of its value, or NULL.
 */
bool options_has(const OptionSyntax *syntax, const char *name, const char **ret_arg);

/* Prints the help for a kind of value: its name arg, its help, and its possible values. word(i)
 * returns value i, or NULL after the last; word may be NULL. The shell completions parse this
 * text. */
void options_help_values(const char *arg, const char *help, const char *(*word)(size_t i),
                         FILE *out);

/* Prints the usage, the summary and all options from the tables. */
void options_help(const OptionSyntax *syntax, FILE *out);
