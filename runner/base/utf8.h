/* SPDX-License-Identifier: Apache-2.0 */
/* Well-formed UTF-8 (Unicode 15, table 3-7): no overlong forms, no surrogates, nothing past
 * U+10FFFF. */
#pragma once

#include <stddef.h>

/* Bytes of the well-formed sequence at s, 1 to 4, or 0 where there is none within left bytes. A NUL
 * is a sequence of one byte like any other. */
size_t utf8_sequence(const char *s, size_t left);
