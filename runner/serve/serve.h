/* SPDX-License-Identifier: Apache-2.0 */
/* holt serve: JSON-RPC over stdin and stdout, or over a socket. It makes and removes sessions
 * (methods.h), and their keepers do everything else (proxy.h). */
#pragma once

#include "rpc/server.h"

/* Makes the table of all methods. The caller frees *ret with serve_methods_free(), after
 * serve_run(). Returns 0 or -ENOMEM. */
int serve_methods_new(RpcMethod **ret, size_t *ret_count, Error *reterr);
RpcMethod *serve_methods_free(RpcMethod *methods, size_t count);

/* Serves until a signal ends it or, without a socket, until its client disconnects. socket_path:
 * socket to listen on, or NULL for stdin and stdout. Returns 0 or a negative errno. */
int serve_run(const RpcMethod *methods, size_t count, const char *socket_path, Error *reterr);
