/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "serve/owned.h"
#include "serve/proxy.h"

/* What the methods of holt serve get as their data. */
typedef struct Server {
        Proxy *proxy; /* first, for the methods of proxy.c */
        Owned *owned;
} Server;

extern const RpcMethod serve_methods[];
extern const size_t serve_methods_count;
