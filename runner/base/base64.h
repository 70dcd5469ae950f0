/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648, section 4): bytes in JSON. */
#pragma once

#include <stddef.h>

/* length bytes as text, with a NUL; owned by the caller, NULL when memory is out. */
char *base64_encode(const void *data, size_t length);

/* Strict: the alphabet alone, no line breaks, padded, and no bits that say nothing (section 3.5),
 * so that one sequence of bytes has one text. *ret is owned by the caller and has a NUL behind its
 * *ret_length bytes. 0, -EINVAL or -ENOMEM. */
int base64_decode(const char *text, char **ret, size_t *ret_length);
