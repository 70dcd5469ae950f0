/* SPDX-License-Identifier: Apache-2.0 */
/* CONNECT to a proxy outside (RFC 9110 section 9.3.6): the request, and the head of its reply.
 * Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "policy/net/address.h"

enum {
        UPSTREAM_REQUEST_MAX = 2048, /* Bytes. */
        UPSTREAM_REPLY_MAX = 16384,  /* Bytes of the head of a reply. */
};

/* Writes a request. host: a name or an address; an IPv6 address has no brackets. credentials:
 * "user:password" in base64, or "". Returns its length. */
size_t upstream_write(const char *host, uint16_t port, const char *credentials,
                      char ret[UPSTREAM_REQUEST_MAX]);

/* Reads the head of a reply, as far as it has arrived. *seen is 0 before the first call; each call
 * moves it on. Returns 1 at its end, with the status in *ret_status; 0 if more bytes are needed; or
 * -EBADMSG if it is malformed or too long. If it returns 1, *seen is the length of the head. */
int upstream_read(const uint8_t *data, size_t length, size_t *seen, unsigned *ret_status);

/* Returns the errno for a status that is not 2xx. */
int upstream_errno(unsigned status);
