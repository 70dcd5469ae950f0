/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the head of a request to upgrade, and reads the head of its response. */
#pragma once

#include "gateway/exchange.h"

enum { TUNNEL_HEAD_MAX = 64 << 10 }; /* Bytes of the heads of a response, together. */

/* Appends the head of the request to ret. Returns 0, -ENOMEM, or -EINVAL if a part of it is not
 * allowed in a head. */
int tunnel_write_head(const Exchange *e, Buffer *ret);
/* Returns the length of the head at the start of the bytes, with its empty line. Returns 0 if the
 * head is not complete, or -EPROTO if it is malformed or too long. */
ssize_t tunnel_head_length(const char *bytes, size_t length);
/* Takes a complete head, line by line. Returns 0, -ENOMEM, or -EPROTO. */
int tunnel_take_head(Exchange *e, const char *head, size_t length);
/* Whether a comma-separated value contains the word, in any case of letters. */
bool header_has_word(const char *value, const char *word);
