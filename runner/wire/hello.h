/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the first bytes of a client. The name of the server is in a TLS ClientHello (RFC 8446, RFC
 * 6066), or in the Host of an HTTP/1 request (RFC 9112). Pure. The bytes are an attacker's and may
 * arrive in pieces.
 *
 * Theory of operation. A server on an allowed address may serve other names, too. So the name that
 * a client sends to it is compared with the name that the client resolved. That only helps if holt
 * and the server read the same name. If servers could read the bytes in different ways, the result
 * is HELLO_BAD. The same goes for bytes before a ClientHello that some servers skip, such as TLS
 * warnings. Empty lines before an HTTP request are skipped here, too.
 *
 * Only the first request of a connection is read. HTTP/2 without TLS is HELLO_OTHER, because each
 * of its streams could name another host. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/net/rules.h"

enum { HELLO_MAX = 65536 }; /* Bytes that are read, at most. */

typedef enum HelloKind {
        HELLO_MORE,  /* More bytes are needed. */
        HELLO_OTHER, /* Neither TLS nor HTTP: any other protocol. */
        HELLO_TLS,   /* A whole ClientHello. One of SSLv2 has no name. */
        HELLO_HTTP,  /* A whole head of an HTTP/1 request. */
        HELLO_BAD,   /* It begins like TLS or HTTP but is malformed, ambiguous or too long. */
} HelloKind;

typedef enum HelloPhase {
        HELLO_PHASE_START,
        HELLO_PHASE_TLS,   /* Records of TLS. */
        HELLO_PHASE_SSL2,  /* Perhaps a ClientHello of SSLv2. */
        HELLO_PHASE_BLANK, /* Blanks and empty lines before a request. */
        HELLO_PHASE_WORD,  /* Perhaps a method. */
        HELLO_PHASE_LINE,  /* The rest of a first line. */
        HELLO_PHASE_HEAD,  /* The head of a request. */
        HELLO_PHASE_MAX,
} HelloPhase;

typedef struct Hello {
        HelloKind kind;
        bool hidden; /* TLS with an encrypted ClientHello (extension 0xfe0d) or encrypted SNI. */
        const char *why; /* The reason for HELLO_BAD, such as "two Host fields"; static. */
        /* The SNI or the Host without its port, in the usual form of net_name_normal(); "" if there
         * is none. An address is in its usual text form. */
        char name[NET_NAME_MAX + 1];

        /* Only for hello.c: how far the bytes have been read. */
        HelloPhase phase;
        size_t start;   /* Offset of the request. */
        size_t seen;    /* Offset of the next byte, or of the next TLS record. */
        size_t body;    /* Bytes of the ClientHello in the records before. */
        size_t message; /* Bytes of the whole ClientHello; 0 if they are unknown. */
} Hello;

/* Reads what has arrived so far. *hello is zero before the first call for a connection. Each later
 * call gets the same bytes and the next ones; the time of all calls together is linear. HELLO_BAD
 * is the result of a CONNECT request, of a URI that differs from the Host field, and of two Host
 * fields or server names. Obsolete folding and bare line feeds give it, too. At HELLO_MAX bytes,
 * HELLO_MORE is no longer returned. */
void hello_read(const uint8_t *data, size_t length, Hello *hello);

/* Decides about a client that sends no more bytes, although hello_read() has returned HELLO_MORE.
 * If closed is true, the client has closed its side, and the result is never HELLO_MORE. Otherwise
 * the client has been silent for a while. Then one word without an end becomes HELLO_OTHER, such as
 * "ruok" for ZooKeeper. Everything else stays HELLO_MORE. */
void hello_finish(const uint8_t *data, size_t length, bool closed, Hello *hello);
