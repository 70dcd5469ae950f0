/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines by table: a verb's own options, and those of the policy's fields (policy_fields[]).
 *
 * "--name value" and "--name=value" mean the same; "--" ends the options. Names are never shortened
 * and there are no one-letter options but -h. Options that belong to the policy are only noted here
 * and applied later (options_apply), because a --policy anywhere on the line comes before them. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/strings.h"
#include "policy/policy.h"

typedef enum OptionKind {
        OPTION_BOOL,   /* bool, set to true; takes no argument */
        OPTION_STRING, /* const char *, borrowed from argv; the last one wins; never empty */
        OPTION_LIST,   /* StrList, added to */
        OPTION_ENUM,   /* unsigned, the index in names[] */
        OPTION_KIND_MAX,
} OptionKind;

typedef struct Option {
        const char *name; /* "--report" */
        const char *arg;  /* "FILE", for the help; NULL for OPTION_BOOL */
        const char *help; /* one line */
        OptionKind kind;
        size_t offset;            /* into the struct that options_parse() fills */
        const char *const *names; /* of OPTION_ENUM, NULL-terminated */
} Option;

/* What a verb takes. */
typedef struct OptionSyntax {
        const char *verb;    /* "run", "policy show" */
        const char *usage;   /* "[OPTIONS] [--] [COMMAND [ARG...]]" */
        const char *summary; /* what the verb does, for the help; lines split by '\n' */
        const Option *options;
        size_t options_count;
        bool policy;             /* takes --policy and the options of the policy's fields */
        bool operands;           /* takes operands, between options and after */
        bool operand_ends;       /* the first operand ends the options: the rest is a command */
        const char *help_epilog; /* printed last in the help, or NULL */
} OptionSyntax;

/* One option of a policy field, not yet applied. */
typedef struct OptionWord {
        const PolicyField *field;
        const char *value; /* borrowed from argv; NULL where the option takes none */
} OptionWord;

typedef struct OptionResult {
        bool help;             /* -h or --help: nothing after it was looked at */
        const char **policies; /* each --policy in order, NULL-terminated; borrowed from argv */
        size_t policies_count;
        OptionWord *words; /* in order */
        size_t words_count;
        const char **operands; /* NULL-terminated; borrowed from argv */
        size_t operands_count;
} OptionResult;

void options_clear(OptionResult *result);

/* Reads argv[1] to argv[argc - 1]; argv[0] is the verb and is not looked at.
 *
 * target  the struct that syntax->options point into, zeroed or with defaults; may be NULL where
 *         syntax has none. OPTION_LISTs in it belong to the caller, on failure too.
 *
 * 0, -EINVAL with an ERROR_USAGE (unknown option with the nearest one, missing or needless value,
 * needless operand),
 * -ENOMEM. On failure *ret is not written. */
int options_parse(const OptionSyntax *syntax, int argc, const char *const *argv, void *target,
                  OptionResult *ret, Error *reterr);

/* Applies the noted policy options in order, as the caller's word. As policy_set(). */
int options_apply(const OptionResult *result, Policy *policy, Error *reterr);

/* Starts policy from the presets of --policy, or from POLICY_PRESET_DEFAULT where there is none,
 * then applies the options: all that a command line without policy files means.
 * 0, -EINVAL for a policy file (see policy_name_is_file; policy-files.h reads those), or as
 * policy_preset() and policy_set(). */
int options_policy(const OptionResult *result, Policy *policy, Error *reterr);

/* Adds to out how help says of what stands for a value: arg, what it is, and the words that there
 * are, each by its number, NULL past the last; or NULL. Completions read it. */
void options_help_values(const char *arg, const char *help, const char *(*word)(size_t i),
                         FILE *out);

/* Prints usage, summary and all options, made from the tables. */
void options_help(const OptionSyntax *syntax, FILE *out);
