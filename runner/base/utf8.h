/* SPDX-License-Identifier: Apache-2.0 */
/* Well-formed UTF-8 (Unicode 15, table 3-7): no overlong forms, no surrogates, nothing past
 * U+10FFFF. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Length of the well-formed sequence at s, 1 to 4 bytes; 0 if none lies within left bytes. A NUL is
 * a sequence of one byte. */
size_t utf8_sequence(const char *s, size_t left);

/* How many of the last bytes, 0 to 3, may be the start of an incomplete character. */
size_t utf8_unfinished(const char *data, size_t length);

/* Whether all of the string is well-formed. */
bool utf8_valid(const char *s);
