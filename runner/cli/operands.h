/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a command line that are no options, where they are not what the verb takes. */
#pragma once

#include "cli/options.h"

/* 0, or -EINVAL with an error that says which word of usage is lacking, or which word is too many.
 * verb may be two words. */
int operands_check(const char *verb, const char *usage, const char *const *operands, size_t count,
                   size_t least, size_t most, Error *reterr);

/* What follows the session's name: "holt files NAME ls". */
typedef struct Subverb {
        const char *name, *usage; /* usage: of what stands behind it */
        size_t least, most;
} Subverb;

/* The row that operands, whose first is the session, ask for, with as many words as it takes. */
int operands_subverb(const char *verb, const Subverb *table, size_t table_count,
                     const char *const *operands, size_t count, size_t *ret, Error *reterr);

/* Errors say "holt VERB NAME"; this makes commands of it, to be copied. name may be NULL, and what
 * is no session's name changes nothing. */
void operands_name_session(const char *name, Error *error);
