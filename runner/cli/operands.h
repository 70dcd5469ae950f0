/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the operands: the words of a command line that are not options. */
#pragma once

#include "cli/options.h"

/* Checks the number of operands. Returns 0, or -EINVAL with an error that names the missing word of
 * usage, or the unexpected operand. verb may be two words. */
int operands_check(const char *verb, const char *usage, const char *const *operands, size_t count,
                   size_t least, size_t most, Error *reterr);

/* A verb that follows the session's name, such as ls in "holt files NAME ls". */
typedef struct Subverb {
        const char *name, *usage; /* usage: the words after the verb */
        size_t least, most;
} Subverb;

/* Sets *ret to the index of the row that operands ask for, and checks the number of its operands.
 * operands[0] is the session's name. */
int operands_subverb(const char *verb, const Subverb *table, size_t table_count,
                     const char *const *operands, size_t count, size_t *ret, Error *reterr);

/* Replaces "NAME" by the session's name in the "holt VERB NAME" of an error, so that the command
 * can be copied. Does nothing if name is NULL or not the name of a session. */
void operands_name_session(const char *name, Error *error);
