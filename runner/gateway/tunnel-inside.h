/* SPDX-License-Identifier: Apache-2.0 */
/* A WebSocket's connection to the program.
 *
 * libmicrohttpd gives away the socket of a plain connection. It ends a connection with TLS soon
 * after it has given it away. So such a connection only stays suspended, and the gateway sends and
 * receives by GnuTLS itself. Then the bytes that the program has sent before the response are
 * lost; a client of WebSockets sends none. */
#pragma once

#include <gnutls/gnutls.h>

#include "gateway/exchange.h"

typedef struct TunnelInside {
        int fd;                                   /* -1 until bytes can pass */
        gnutls_session_t session;                 /* NULL without TLS */
        struct MHD_UpgradeResponseHandle *handle; /* NULL with TLS */
} TunnelInside;

/* Takes over the connection, which has TLS, and puts the head of the response before the bytes in
 * e->down. Returns 0 or a negative errno. */
int tunnel_inside_take(Exchange *e, TunnelInside *inside);
/* Receives bytes. Returns their number, 0 at the end, or a negative errno: -EAGAIN if nothing has
 * come. */
ssize_t tunnel_inside_receive(const TunnelInside *inside, char *ret, size_t most);
/* Sends bytes. Returns their number or a negative errno. After -EAGAIN, send the same again. */
ssize_t tunnel_inside_send(const TunnelInside *inside, const char *bytes, size_t length);
/* Tells the program that nothing more comes. */
void tunnel_inside_shut(const TunnelInside *inside);
