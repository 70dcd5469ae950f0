/* SPDX-License-Identifier: Apache-2.0 */
/* Removes control characters from texts of events. holt prints these texts on a terminal, and drops
 * an event that contains such characters. */
#pragma once

#include <stddef.h>

/* Copies length bytes that a program has sent. Bytes that no URL has become %XX. Writes at most
 * size bytes, the NUL included. */
void plain_copy_url(char *ret, size_t size, const char *text, size_t length);
/* Copies a text for people. Control characters, and bytes that are not UTF-8, become spaces. */
void plain_copy_text(char *ret, size_t size, const char *text);
