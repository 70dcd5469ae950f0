/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to an HTTP proxy (RFC 9112, RFC 9110 section 9.3.6): CONNECT, and requests with a URI.
 * Pure.
 *
 * A request with a URI is rewritten for the server: a path replaces the URI, and the Host field
 * gets the URI's host. "Connection: close" ends the connection after the reply, because the next
 * request could be for another host. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/authority.h"
#include "wire/http-head.h"

enum {
        HTTP_PROXY_MAX = 65536,   /* Bytes of a head. */
        HTTP_PROXY_GROWTH = 1024, /* The rewritten head is at most this many bytes longer. */
};

/* The head does not tell the length of these bodies: one that lasts until the connection ends, and
 * one in chunks. */
#define HTTP_PROXY_ENDLESS UINT64_MAX
#define HTTP_PROXY_CHUNKED (UINT64_MAX - 1)

typedef enum HttpProxyKind {
        HTTP_PROXY_MORE,    /* More bytes are needed. */
        HTTP_PROXY_CONNECT, /* The bytes after the head are for the target. */
        HTTP_PROXY_FORWARD, /* http_proxy_write() makes the head for the target. */
        HTTP_PROXY_BAD,     /* Malformed, ambiguous, too long, or no request to a proxy. */
} HttpProxyKind;

typedef struct HttpProxyRequest {
        HttpProxyKind kind;
        const char *why;  /* The reason for HTTP_PROXY_BAD; static. */
        Authority target; /* The port is never 0. */
        size_t length;    /* Bytes of the head. */
        uint64_t body;    /* Bytes of the body, or HTTP_PROXY_CHUNKED. */
        size_t seen;      /* Only for http-proxy.c: how far the bytes have been read. */
} HttpProxyRequest;

/* Reads what has arrived so far. *request is zero before the first call for a request; each later
 * call gets the same bytes and the next ones. The Host field of CONNECT may differ, because no
 * server gets it. */
void http_proxy_read(const uint8_t *data, size_t length, HttpProxyRequest *request);

enum { HTTP_CHUNK_HEAD = 24 }; /* Bytes that http_chunk_read() needs at most. */

/* Reads the beginning of a chunk (RFC 9112 section 7.1): its size. Before the size is the line end
 * of the previous chunk, unless this is the first. The last chunk has no data. Extensions and
 * trailers are refused, because servers differ in how they read them. Returns 1, with the number of
 * bytes up to the next beginning in *ret_size; 0 if more bytes are needed; or -EBADMSG. */
int http_chunk_read(const uint8_t *data, size_t length, bool first, uint64_t *ret_size,
                    bool *ret_last);

/* Writes the head for the target of HTTP_PROXY_FORWARD. data: as given to http_proxy_read().
 * Returns its length, at most request->length + HTTP_PROXY_GROWTH bytes, which ret must have. */
size_t http_proxy_write(const uint8_t *data, const HttpProxyRequest *request, uint8_t *ret);
