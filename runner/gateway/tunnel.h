/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket (RFC 6455) by way of a route.
 *
 * Theory of operation. A request with "Upgrade: websocket" is judged like any other. libcurl only
 * makes the connection to the upstream, so addresses and certificates are checked as always. The
 * gateway writes the head of the request, and reads the head of the response
 * (gateway/tunnel-head.h). If the upstream switches protocols, the tunnel gets the program's
 * connection from libmicrohttpd (gateway/tunnel-inside.h), and bytes pass in both directions until
 * both sides have ended. Any other response goes back as the response to a request. Compression is
 * not offered, because the gateway looks for credentials in the frames.
 *
 * The route's timeout limits the time to the response, and then each pause without bytes. Its body
 * limit counts all bytes that the program sends. */
#pragma once

#include "gateway/exchange.h"

/* Notes whether the request asks for a WebSocket. If it is malformed, sets e->verdict. */
void tunnel_prepare(Exchange *e, bool http_1_1);
/* Starts on the connection to the upstream, which libcurl has made. If that fails, sets
 * e->verdict. */
void tunnel_start(Exchange *e);
/* Returns the response that gives the socket away, or NULL without memory. */
struct MHD_Response *tunnel_make_answer(Exchange *e);
/* Takes the program's connection over, which has TLS, to send the response itself. Suspend it
 * then. Returns 0 or a negative errno. */
int tunnel_take_over(Exchange *e);
/* Goes on after bytes have left for the program. */
void tunnel_continue(Exchange *e);
/* Ends the connection to the upstream, and soon the program's. */
void tunnel_end(Exchange *e);
/* Stops watching sockets, and frees the state. */
void tunnel_free(Exchange *e);
/* Tells holt about all open tunnels. Call it before the process ends. */
void tunnels_tell(const Gateway *gateway);
