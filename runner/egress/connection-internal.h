/* SPDX-License-Identifier: Apache-2.0 */
/* One connection, for the files that handle it. No other file includes this header. */
#pragma once

#include <sys/epoll.h>

#include "egress/connection.h"
#include "wire/hello.h"
#include "egress/proxy.h"
#include "egress/pump.h"
#include "egress/queue.h"
#include "egress/upstream.h"

enum {
        ATTEMPTS_MAX = 8, /* Addresses to which one connection is tried, at most. */
};

/* Events of a connected socket. While the socket takes no more bytes, EPOLLOUT is added. */
#define SIDE_EVENTS (EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET)
#define ATTEMPT_EVENTS (SIDE_EVENTS | EPOLLOUT)

typedef enum ConnectionState {
        CONNECTION_RESOLVES,
        CONNECTION_ASKS, /* It waits for the caller's answer (questions.h). */
        CONNECTION_CONNECTS,
        CONNECTION_TUNNELS, /* The proxy outside has been asked to connect. */
        CONNECTION_ENTERS,  /* It is connected outside, and its packet inside was let in (queue.h).
                             */
        CONNECTION_GREETS,  /* It waits for the client's first bytes. */
        CONNECTION_MOVES,
} ConnectionState;

/* The chunks that are still to come in the body of a request to the proxy inside. */
typedef enum ConnectionChunks {
        CHUNKS_NONE,
        CHUNKS_FIRST,
        CHUNKS_NEXT,
} ConnectionChunks;

typedef struct Attempt {
        struct Connection *connection;
        int fd;
        LoopWatch *watch;
} Attempt;

typedef struct Connection {
        struct Connection *next;
        Egress *egress;
        ConnectionState state;
        Held *held; /* The packet that waits for a verdict, or NULL. */
        int client_fd, server_fd;
        LoopWatch *client_watch, *server_watch;
        uint32_t client_events, server_events; /* The events of the watches. */
        LoopTimer *timer;
        NetAddress asked; /* The address inside to which the program connects. */
        uint16_t port;
        uint16_t target_port; /* The port to connect to: that of an imported port or of the proxy
                                 outside may differ. */
        bool broken; /* The server reset its connection before the program's packet was let in. */
        bool leaves; /* It knows that the sandbox has ended (leave.c). */
        bool published;            /* It comes from the host, to a published port. */
        int number;                /* The name's number; negative if the address lies in a block. */
        struct Question *question; /* It waits for the answer, or NULL. */
        bool answered;             /* The answer has come. */
        struct Once *once;         /* The one-time grant that it has claimed, or NULL. */
        NetAddress targets[NAME_ADDRESSES_MAX];
        size_t targets_count;
        size_t tried; /* Targets tried so far, the one that has answered included. */
        Attempt attempts[ATTEMPTS_MAX];
        size_t attempts_open;
        int errnum; /* The errno of the last attempt that failed. */
        uint64_t started_ms, deadline;
        uint64_t entered; /* The time at which its packet was let in. */
        uint64_t silent;  /* The time from which on the client counts as silent in its greeting. */
        Pump up, down;    /* To the server, and to the client. */
        ConnectionChunks chunks;
        uint64_t reply_until; /* After a second request: the end of the wait for more of the reply.
                               */
        uint64_t reply_moved; /* The bytes of the reply that had moved when this wait began. */
        Hello hello;          /* The client's greeting as far as it is known. */
        Proxy *proxy;       /* The request to the proxy inside, until it has its reply; or NULL. */
        UpstreamCall *call; /* To the proxy outside, or NULL. */
        bool tunnels;       /* It goes through the proxy outside. */
} Connection;

/* --- connection.c --- */

/* Returns the name that stands for the address asked for, or NULL. */
const char *connection_name(const Connection *c);
/* Each of these frees the connection. */
void connection_refuse(Connection *c, EgressReason reason, const char *other);
/* Refuses a host that is not the one for which the connection's address stands. name or address may
 * be NULL. */
void connection_refuse_host(Connection *c, EgressReason reason, const char *name,
                            const NetAddress *address, const char *other);
/* Ends an allowed connection that could not be made, because of c->errnum. */
void connection_unreached(Connection *c, EgressReason reason);
/* Ends an allowed connection that was made. errnum: 0, or its error. */
void connection_end(Connection *c, int errnum);
/* Ends a connection whose client has sent more than its one request to the proxy inside. */
void connection_end_request(Connection *c);
/* Connects to the next of c->targets. If all have failed, it frees the connection. */
void connection_try(Connection *c);

/* --- connection-judge.c --- */

/* Each of these may free the connection. */

/* Judges c->asked and c->port, and connects. */
void connection_judge(Connection *c);
/* Judges a target that a client of the proxy inside names, and connects. A name gets the address
 * that the resolver would have answered. */
void connection_judge_target(Connection *c, const Authority *target);
/* Connects to a port of the sandbox's loopback if the connection is published, and otherwise to a
 * port of the host's loopback. */
void connection_try_loopback(Connection *c, uint16_t port);

/* --- connection-move.c --- */

/* Begins to move bytes: both sockets are connected. */
void connection_begin_judged(Connection *c);
/* Handle all events of the client's socket, and of the server's once it is connected. */
void connection_on_client(void *data, uint32_t events);
void connection_on_server(void *data, uint32_t events);
/* Continues a greeting or a move when the timer ends. */
void connection_move_on_time(Connection *c);
