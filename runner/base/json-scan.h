/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a text is strictly JSON before cJSON parses it; json.h lists what cJSON would accept.
 * Only json.c uses it. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/json.h"

/* Returns 0, or -EINVAL with ERROR_POLICY and the text "name:line:column: what". */
int json_scan(const char *bytes, size_t length, const char *name, Error *reterr);

static inline bool json_is_digit(int c) {
        return c >= '0' && c <= '9';
}

/* Whether the value has no fraction. Values above JSON_INTEGER_MAX never have one. */
static inline bool json_is_integer(double value) {
        return fabs(value) > (double)JSON_INTEGER_MAX || (double)(int64_t)value == value;
}
