/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy inside (network.proxy), for programs that need one: HTTP and SOCKS5 on one port. Its
 * requests are judged and connected like the connections of other programs (connection.h). */
#pragma once

#include "wire/authority.h"
#include "egress/egress.h"

/* A request of a client. */
typedef struct Proxy Proxy;

/* Whether a client that has connected to this address and port wants the proxy. */
bool proxy_takes(const Egress *egress, const NetAddress *to, uint16_t port);
/* Takes over fd, and gives it to connection_ask() with the request. */
void proxy_accept(Egress *egress, int fd);

/* Returns the host and the port of the request. Borrowed. */
const Authority *proxy_target(const Proxy *proxy);
/* The target is connected: replies to the client. For a request that the proxy has written anew,
 * *ret is that request, which the target gets first; owned by the caller. *ret_body is the length
 * of the body that follows, perhaps HTTP_PROXY_CHUNKED. Otherwise *ret is NULL. Returns 0 or a
 * negative errno. */
int proxy_open(const Proxy *proxy, int fd, uint8_t **ret, size_t *ret_length, uint64_t *ret_body);
/* Replies that the target was refused or could not be reached. Takes over fd, and frees proxy. */
void proxy_refuse(Proxy *proxy, int fd, const EgressEvent *event);
/* Ends the connection of a client that has its whole reply and may still send. Takes over fd. */
void proxy_close(Egress *egress, int fd);
/* Accepts NULL. Returns NULL. */
Proxy *proxy_free(Proxy *proxy);
