/* SPDX-License-Identifier: Apache-2.0 */
/* POSIX extended regular expressions that may be anybody's: a model writes them. */
#pragma once

#include <regex.h>
#include <stdbool.h>

#include "base/error.h"

enum {
        GREP_PATTERN_MAX = 1024, /* bytes */
        GREP_COST_MAX = 1000,    /* characters, once repetitions are written out */
        GREP_DEPTH_MAX = 32,     /* parentheses in each other */
};

/* regcomp(3), after a look at what the pattern would cost: glibc's writes "{n}" and "+" out, so
 * that "((a{255}){255}){255}" takes gigabytes, and back-references take exponential time to match.
 *
 * 0 with a regex for regfree(3), or -EINVAL (ERROR_USAGE), -E2BIG (ERROR_LIMIT), -ENOMEM. */
int grep_pattern_compile(const char *pattern, bool ignore_case, regex_t *ret, Error *reterr);
