/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648, section 4), which carries bytes in JSON. */
#pragma once

#include <stddef.h>

/* Encodes length bytes. The result ends in NUL and is owned by the caller; NULL if memory is out.
 */
char *base64_encode(const void *data, size_t length);

/* Decodes strictly: only the alphabet, no line breaks, correct padding, and unused bits must be 0
 * (section 3.5). So each sequence of bytes has exactly one text. *ret is owned by the caller and
 * has a NUL after its *ret_length bytes. Returns 0, -EINVAL or -ENOMEM. */
int base64_decode(const char *text, char **ret, size_t *ret_length);
