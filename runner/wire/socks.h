/* SPDX-License-Identifier: Apache-2.0 */
/* SOCKS5 (RFC 1928): reads what a client sends to the proxy, and writes the replies. Pure.
 *
 * Only CONNECT without authentication is served. SOCKS4 is refused: its clients resolve names
 * themselves, and SOCKS4a adds a second way to say the name. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/authority.h"

enum {
        SOCKS_FIRST = 5, /* The first byte of a client with SOCKS5. */

        /* Codes of a reply. */
        SOCKS_SUCCEEDED = 0,
        SOCKS_FAILURE = 1,
        SOCKS_NOT_ALLOWED = 2,
        SOCKS_NETWORK_UNREACHABLE = 3,
        SOCKS_HOST_UNREACHABLE = 4,
        SOCKS_REFUSED = 5,
        SOCKS_TIMED_OUT = 6,
        SOCKS_NO_COMMAND = 7,
        SOCKS_NO_ADDRESS_TYPE = 8,

        SOCKS_GREETING_REPLY = 2, /* Bytes. */
        SOCKS_REPLY_MAX = 10,     /* Bytes. */
};

/* Reads a greeting: the methods of authentication that the client has. Returns its length; 0 if
 * more bytes are needed; -EACCES if the client wants to authenticate; or -EBADMSG if it is not
 * SOCKS5. ret_reply is the reply to send, unless the result is 0 or -EBADMSG. */
int socks_greeting(const uint8_t *data, size_t length, uint8_t ret_reply[SOCKS_GREETING_REPLY]);

/* Reads a request to connect. Returns its length, or 0 if more bytes are needed. A negative SOCKS_*
 * code is sent as a positive code in a reply before the end. An address in a field for names counts
 * as an address. The port is never 0. */
int socks_request(const uint8_t *data, size_t length, Authority *ret);

/* Writes the reply to a request, and returns its length. code: SOCKS_*. */
size_t socks_reply(int code, uint8_t ret[SOCKS_REPLY_MAX]);

/* Returns the code for an errno of connect(2). */
int socks_code(int errnum);
