/* SPDX-License-Identifier: Apache-2.0 */
/* Words of other tools, above all of docker: those that holt understands, and hints for others. */
#pragma once

#include "cli/options.h"

/* A word that holt takes for one of its own options, such as "-e" for "--env". */
typedef struct OtherName {
        const char *word, *ours;
} OtherName;

extern const OtherName other_names[];
extern const size_t other_names_count;

/* Returns a hint for an option that holt does not have, or NULL. name has no value: "-it". */
const char *other_option_hint(const OptionSyntax *syntax, const char *name);

/* Returns a hint for a verb that holt does not have, or NULL. */
const char *other_verb_hint(const char *name);

/* Splits "SRC:DST[:ro]", the value of -v. *ret_field is the policy's field for it, and *ret_value
 * the value of that field, "SRC:DST", which the caller owns. Returns 0, -EINVAL or -ENOMEM. */
int other_volume(const char *value, const PolicyField **ret_field, char **ret_value, Error *reterr);

/* Refuses a value of --tmpfs with docker's options behind the directory, such as "/x:size=64m".
 * Returns 0 or -EINVAL. */
int other_tmpfs_check(const char *value, Error *reterr);
