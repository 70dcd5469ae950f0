/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of proxy.h share: proxy.c hands requests and answers on, proxy-hold.c keeps what
 * waits for a slow keeper within bounds. */
#pragma once

#include "rpc/client.h"
#include "serve/proxy-tools.h"
#include "serve/proxy.h"
#include "session/directory.h"

/* A request that a keeper has not answered yet. */
typedef struct Pending {
        struct Pending *next;
        struct Upstream *upstream;
        uint64_t id;
        RpcCall *call;  /* NULL when its client has gone */
        unsigned tries; /* of asking again */
        bool with_fds;  /* which have been handed on, so that it cannot be asked again */
        bool unsent;    /* the keeper has gone before it was */
} Pending;

/* A request of a keeper's that the client has been asked and has not answered yet. */
typedef struct Handed {
        struct Handed *next;
        struct Upstream *upstream;
        RpcRequest *request; /* to the client */
        char id[24];         /* as the keeper has it */
        char call[24];       /* by which tool.cancel names it */
} Handed;

/* One client's connection to one keeper. */
typedef struct Upstream {
        struct Upstream *next;
        Proxy *proxy;
        RpcConnection *client;
        char session[SESSION_NAME_MAX + 1];
        RpcClient *keeper;
        uint64_t sent; /* requests */
        bool heard;    /* anything of the keeper's */
        bool paused;   /* there may be more to be read, for which the client has no room */
        bool stopped;  /* it ends: what comes is for the next */
        bool holds;    /* its client is not read, because the keeper is slow to read */
        bool let_go;   /* ... but that held up both: not again before some of it has left */
        size_t queued; /* bytes that waited for the keeper when that was looked at last */
        LoopWatch *watch;
        Pending *pending;
        Handed *handed;
        char *held_method;    /* a notification or a request that waits for room */
        Handed *held_request; /* of a request */
        JsonWriter held;
} Upstream;

struct Proxy {
        Loop *loop;
        LoopTimer *timer; /* is set while an upstream holds its client */
        Upstream *upstreams;
        ProxyTool *tools;
};

/* Stops reading the client if too much of what it has sent waits for the keeper. */
void proxy_hold_if_slow(Upstream *upstream);
/* Reads the client again if enough of that has left. */
void proxy_go_on(Upstream *upstream);
/* Reads the client again: the upstream ends. */
void proxy_let_go(Upstream *upstream);
/* The timer's; data is the Proxy. */
void proxy_on_hold_time(void *data);
