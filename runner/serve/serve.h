/* SPDX-License-Identifier: Apache-2.0 */
/* holt serve: JSON-RPC over stdin and stdout, or over a socket, for adapters. Sessions are made and
 * removed here (methods.h); their keepers do everything else (proxy.h). */
#pragma once

#include "rpc/server.h"

/* The table of all methods. The caller frees *ret after serve_run(). 0 or -ENOMEM. */
int serve_methods_new(RpcMethod **ret, size_t *ret_count, Error *reterr);

/* Serves until a signal ends it or, without a socket, its client has gone. socket_path: where to
 * listen, or NULL for stdin and stdout. 0 or a negative errno. */
int serve_run(const RpcMethod *methods, size_t count, const char *socket_path, Error *reterr);
