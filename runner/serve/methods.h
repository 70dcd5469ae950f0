/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "serve/owned.h"
#include "serve/proxy.h"

/* The data of the methods of holt serve. */
typedef struct Server {
        Proxy *proxy; /* must be first, because the methods of proxy.c use it */
        Owned *owned;
} Server;

/* The form of a session's name, for each parameter with one. */
extern const RpcForm session_name_form;

extern const RpcMethod serve_methods[];
extern const size_t serve_methods_count;
