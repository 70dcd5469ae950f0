/* SPDX-License-Identifier: Apache-2.0 */
/* Hands requests on to the keepers of the sessions that they name, for `holt serve`.
 *
 * Each client has a connection of its own to each keeper that it uses, so that what it owns or
 * watches there goes with it. Answers and notifications come back as they are, these with the
 * session's name, and so do requests, whose answers go the other way. While a client does not read,
 * nothing is read for it from its keepers, who then do with it as with any slow client. */
#pragma once

#include "rpc/server.h"

typedef struct Proxy Proxy;

/* The method table of `holt serve`: more[], then each of the keeper's methods with the parameter
 * "session". *ret is owned by the caller and lives as long as the server. 0 or -ENOMEM. */
int proxy_methods(const RpcMethod *more, size_t more_count, RpcMethod **ret, size_t *ret_count,
                  Error *reterr);

/* The data of the server that has these methods must begin with a Server (methods.h). 0 or -ENOMEM.
 */
int proxy_new(Loop *loop, Proxy **ret, Error *reterr);
/* For rpc_server_on_end() and rpc_server_on_room(). */
void proxy_client_ended(Proxy *proxy, RpcConnection *client);
void proxy_client_has_room(Proxy *proxy, RpcConnection *client);
