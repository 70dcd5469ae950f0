/* SPDX-License-Identifier: Apache-2.0 */
/* Well-formed UTF-8 (Unicode 15, table 3-7): no overlong forms, no surrogates, nothing past
 * U+10FFFF. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the well-formed sequence at s, 1 to 4, or 0 where there is none within left bytes. A NUL
 * is a sequence of one byte like any other. */
size_t utf8_sequence(const char *s, size_t left);

/* How many of the last bytes, 0 to 3, may be the start of a character that goes on behind them. */
size_t utf8_unfinished(const char *data, size_t length);

/* Whether all of the string is well-formed. */
bool utf8_valid(const char *s);
