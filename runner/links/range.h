/* SPDX-License-Identifier: Apache-2.0 */
/* The Range field of a request (RFC 9110, section 14). Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Reads the value of the field for a file of `size` bytes. Returns 1, with the first byte and the
 * number of bytes. Returns 0 if the field must be ignored: it is malformed, has another unit, or
 * asks for several ranges. Returns -ERANGE if the file has none of the bytes. */
int range_read(const char *text, size_t length, uint64_t size, uint64_t *ret_start,
               uint64_t *ret_length);
