/* SPDX-License-Identifier: Apache-2.0 */
/* Passes requests on to the keepers of the sessions that they name, for `holt serve`.
 *
 * Each client has a connection of its own to each keeper that it uses. So its processes and watches
 * end with the client. Replies are passed back unchanged, and notifications get the session's name.
 * A keeper's requests to the client are passed on, too. While a client does not read, nothing is
 * read from its keepers. They then treat it like any slow client. */
#pragma once

#include "rpc/server.h"

typedef struct Proxy Proxy;

/* Makes the method table of `holt serve`: the methods in more, then each of the keeper's methods
 * with the additional parameter "session". The caller owns *ret, which must live as long as the
 * server. Returns 0 or -ENOMEM. */
int proxy_methods(const RpcMethod *more, size_t more_count, RpcMethod **ret, size_t *ret_count,
                  Error *reterr);

/* Frees such a table of `count` methods. Returns NULL. */
RpcMethod *proxy_methods_free(RpcMethod *methods, size_t more_count, size_t count);

/* Makes the proxy. The data of the server with these methods must begin with a Server (methods.h).
 * Returns 0 or -ENOMEM. */
int proxy_new(Loop *loop, Proxy **ret, Error *reterr);
/* Handlers for rpc_server_on_end() and rpc_server_on_room(). */
void proxy_client_ended(Proxy *proxy, RpcConnection *client);
void proxy_client_has_room(Proxy *proxy, RpcConnection *client);
