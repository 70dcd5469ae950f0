/* SPDX-License-Identifier: Apache-2.0 */
/* POSIX extended regular expressions from untrusted sources, such as a model. */
#pragma once

#include <regex.h>
#include <stdbool.h>

#include "base/error.h"

enum {
        GREP_PATTERN_MAX = 1024, /* In bytes. */
        GREP_COST_MAX = 1000,    /* Characters, after repetitions are expanded. */
        GREP_DEPTH_MAX = 32,     /* Maximum nesting depth of parentheses. */
};

/* Calls regcomp(3) after estimating the cost of the pattern. glibc expands "{n}" and "+", so that
 * "((a{255}){255}){255}" takes gigabytes, and back-references take exponential time to match.
 *
 * Returns 0 with a regex for regfree(3), -EINVAL (ERROR_USAGE), -E2BIG (ERROR_LIMIT) or -ENOMEM. */
int grep_pattern_compile(const char *pattern, bool ignore_case, regex_t *ret, Error *reterr);
