/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of proxy.h. proxy.c passes requests and replies on. proxy-hold.c
 * bounds what waits for a slow keeper. proxy-rest.c decides who answers for a session at rest.
 * proxy-table.c has the methods. */
#pragma once

#include <sys/types.h>
#include <time.h>

#include "rpc/client.h"
#include "serve/proxy-tools.h"
#include "serve/proxy.h"
#include "serve/readers.h"
#include "session/directory.h"

/* Identifies a session, and the time of the last change of its database. */
typedef struct SessionVersion {
        dev_t device;
        ino_t inode;
        struct timespec changed;
} SessionVersion;

/* A request that a keeper has not answered yet. */
typedef struct Pending {
        struct Pending *next;
        struct Upstream *upstream;
        uint64_t id;
        RpcCall *call;          /* NULL if its client has gone */
        unsigned tries;         /* number of times it was sent again */
        bool with_fds;          /* its fds were passed on, so it cannot be sent again */
        bool unsent;            /* the keeper ended before it was sent */
        SessionVersion version; /* for a reader: the session's version when the request came */
} Pending;

/* A request from a keeper that was passed to the client and is not answered yet. */
typedef struct Handed {
        struct Handed *next;
        struct Upstream *upstream;
        RpcRequest *request; /* the request to the client */
        LoopTimer *timer;    /* NULL if the keeper waits for ever */
        uint64_t patience;   /* usec for which the keeper waits for the reply, or 0 */
        char id[24];         /* id of the keeper's request */
        char call[24];       /* the id that tool.cancel uses */
} Handed;

/* One client's connection to one keeper, or to a reader of a session at rest. */
typedef struct Upstream {
        struct Upstream *next;
        Proxy *proxy;
        RpcConnection *client;
        char session[SESSION_NAME_MAX + 1];
        RpcClient *keeper;
        bool reads;             /* it is a reader */
        int reader_fd;          /* its pidfd, or FD_NONE */
        SessionVersion version; /* the session's version before the reader started */
        /* usec of time_now_usec(): a reader takes requests until then, and ends when it is idle. */
        uint64_t takes_until, ends_at;
        uint64_t sent; /* number of requests sent */
        bool heard;    /* the keeper has sent a message */
        bool paused;   /* there may be more to read, but the client has no room */
        bool stopped;  /* it is ending: further requests go to the next keeper */
        bool holds;    /* its client is not read, because the keeper reads slowly */
        /* Its client is read although the keeper is slow, because both would block otherwise. */
        bool let_go;
        size_t queued; /* bytes that waited for the keeper at the last check */
        LoopWatch *watch;
        Pending *pending;
        Handed *handed;
        /* Method of a notification or request that waits until the client has room. */
        char *held_method;
        Handed *held_request; /* set if that is a request */
        JsonWriter held;
} Upstream;

struct Proxy {
        Loop *loop;
        LoopTimer *timer; /* set while an upstream holds its client */
        Upstream *upstreams;
        ProxyTool *tools;
        Readers readers;
        LoopTimer *read_timer;
        uint64_t read_at; /* when the timer ends readers, or 0 */
        Pending *waiting; /* requests that wait for a reader; the oldest first */
};

/* Takes ownership of fd, a connection to a keeper, or to a reader with the pidfd reader_fd. */
int upstream_new(Proxy *proxy, RpcConnection *client, const char *session, int reader_fd, int fd,
                 Upstream **ret, Error *error);
/* Returns the client's connection to the keeper of that session, or (reads) to a reader that takes
 * requests. NULL if there is none. */
Upstream *proxy_find_upstream(const Proxy *proxy, const RpcConnection *client, const char *session,
                              bool reads);

enum { ASK_KEEPER, ASK_READER, ASK_NOBODY };
/* Answers a call that must not start a session at rest: one that reads from the session or stops
 * it. Returns ASK_NOBODY if the call was answered, ASK_KEEPER or ASK_READER if a keeper or a reader
 * must answer it, or a negative errno. *ret_version is written for ASK_READER. A session counts as
 * live if this client has an earlier request under way, which may have started it. */
int proxy_answer_at_rest(Proxy *proxy, RpcCall *call, SessionVersion *ret_version, Error *error);

/* For route.add: adds the credentials of the new route to the descriptors of the request, from the
 * environment of this process, unless the client has sent them. Returns 0 or a negative errno. */
int proxy_add_secrets(RpcCall *call, int *fds, size_t *count, Error *error);

/* The function of each method that a keeper serves; data is a Server. */
int proxy_call(RpcCall *call, void *data, Error *error);

/* Stops reading the client if too many of its bytes wait for the keeper. */
void proxy_hold_if_slow(Upstream *upstream);
/* Reads the client again if enough of these bytes have left. */
void proxy_go_on(Upstream *upstream);
/* Reads the client again because the upstream ends. */
void proxy_let_go(Upstream *upstream);
/* Is called by the timer. data is the Proxy. */
void proxy_on_hold_time(void *data);
