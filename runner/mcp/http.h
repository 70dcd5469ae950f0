/* SPDX-License-Identifier: Apache-2.0 */
/* holt mcp --http: streamable HTTP on the loopback interface.
 *
 * Theory of operation. Each session of the protocol is a child, which serves its client over a
 * socket as over stdio (mcp.h). This process only carries messages. A POST brings one to the child.
 * Its response has the reply and earlier messages as events. A GET opens a stream for messages that
 * belong to no request. Each connection carries one request.
 *
 * Any program and any web page on this host can reach the port. So each request needs the token.
 * Its Host must be the loopback interface: a name that somebody else controls may lead here, too
 * (DNS rebinding). It must have no Origin, which only browsers send. Nothing is read of the body
 * before the head was judged. */
#pragma once

#include "mcp/mcp.h"

enum {
        HTTP_CONNECTIONS_MAX = 64,
        HTTP_SESSIONS_MAX = 16,
        HTTP_TOKEN_MIN = 32, /* characters of a token */
        HTTP_TOKEN_MAX = 256,
};

typedef struct HttpServer HttpServer;

/* Listens on 127.0.0.1. port: 0 lets the kernel choose. token: borrowed, or NULL to make one.
 * Returns 0 or a negative errno; -EINVAL with an ERROR_USAGE if the token is too short. */
int http_open(const McpSettings *settings, uint16_t port, const char *token, HttpServer **ret,
              Error *reterr);
uint16_t http_port(const HttpServer *server);
const char *http_token(const HttpServer *server);
/* Serves until a signal. Returns 0 or a negative errno. */
int http_run(HttpServer *server, Error *reterr);
/* NULL is legal; returns NULL. */
HttpServer *http_free(HttpServer *server);
