/* SPDX-License-Identifier: Apache-2.0 */
/* Is a text strictly JSON? Read before cJSON sees it; what that takes too much of, see json.h. Only
 * for json.c. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/json.h"

/* 0, or -EINVAL with ERROR_POLICY "name:line:column: what". */
int json_scan(const char *bytes, size_t length, const char *name, Error *reterr);

static inline bool json_is_digit(int c) {
        return c >= '0' && c <= '9';
}

/* Without a fraction; past JSON_INTEGER_MAX there is none. */
static inline bool json_is_integer(double value) {
        return fabs(value) > (double)JSON_INTEGER_MAX || (double)(int64_t)value == value;
}
