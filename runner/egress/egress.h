/* SPDX-License-Identifier: Apache-2.0 */
/* holt-egress: the host's side of a sandbox's network.
 *
 * Theory of operation. holt starts this process beside a sandbox whose policy allows some hosts.
 * Programs inside ask the resolver (resolver.c) for a name. An allowed name has a number (names.h),
 * and the reply is the address that stands for this number. All these addresses are local to the
 * sandbox, so a connection to one arrives at a listener that holt-egress holds (maker.h). The local
 * address of the accepted socket tells which name the program wanted. holt-egress judges name and
 * port by the rules, connects to the real host from outside, and moves the bytes (connection.c,
 * pump.h). Only hosts that a rule allows exist inside: the resolver knows only their names, and
 * routes lead only to their addresses. If somebody can be asked about other hosts, questions.h
 * applies.
 *
 * The process stays in the host's network, but it has no capability and opens no file after its
 * start (confine.h). Every byte from the sandbox, and every byte from a server, is an attacker's.
 */
#pragma once

#include "base/loop.h"
#include "maker/listeners.h"
#include "resolve/names.h"
#include "network/protocol.h"
#include "policy/net/rules.h"

typedef enum SniMode {
        SNI_OPTIONAL, /* A TLS client may leave the name out. */
        SNI_REQUIRED,
} SniMode;

typedef struct Egress {
        Loop *loop;
        int control_fd; /* To holt. */
        LoopWatch *control_watch;
        int maker_fd;   /* To the maker (maker.h). */
        bool later;     /* The settings come later. */
        bool leaves;    /* holt has closed its socket; see egress_leave(). */
        int network_fd; /* The sandbox's net namespace if the settings come later. */
        int spare_fd;   /* See egress_accept(). */
        char *settings; /* Until all of them are applied. */
        size_t settings_length;
        NetRules rules;
        SniMode sni;
        bool has6;       /* The sandbox has IPv6. */
        bool ports_only; /* The mode is none: only ports are shared. */
        bool audits;     /* holt wants to know how allowed connections ended. */
        NetPlan plan;
        Names *names;
        struct Resolver *resolver;
        struct Connection *connections;
        size_t connections_count;
        struct Pipes *pipes;
        struct Ports *ports;        /* NULL without ports. */
        struct Requests *requests;  /* To the maker. */
        struct Listener *listeners; /* See serving.h. */
        struct Grant *grants;       /* The first is carried out now (grants.h). */
        struct Once *once;          /* One-time grants (once.h). */
        LoopTimer *once_timer;
        uint64_t ask_time;           /* usec to answer a question. */
        struct Questions *questions; /* See questions.h; NULL if nobody is to be asked. */
        struct Queue *queue;         /* NULL if connections do not wait (queue.h). */
        bool proxy;                  /* The sandbox has a proxy: proxy.h. */
        struct Proxy *proxies;
        size_t proxies_count, proxies_bytes;
        struct Upstream *upstream; /* NULL unless connections go through a proxy: upstream.h. */
} Egress;

enum { TURN_MAX = 64 };

/* Returns how many items to take from a socket in its next turn. That is one item unless the last
 * turn found more, because finding a socket empty costs a system call. */
static inline unsigned turn_next(unsigned turn, unsigned done) {
        return done < turn ? 1 : turn < TURN_MAX ? turn * 2 : TURN_MAX;
}

/* --- accept.c --- */

int egress_accept_prepare(Egress *egress, Error *reterr);
/* Accepts a connection, as accept4(2) does, and tells its peer unless ret_peer is NULL. If no
 * descriptor is free, it resets the connection. Otherwise the connection would stay in the queue,
 * and wake the loop up without end. */
int egress_accept(Egress *egress, int listener_fd, NetAddress *ret_peer, uint16_t *ret_port);

/* --- leave.c --- */

/* Passes on the bytes that the sandbox has sent before its end, and then stops the loop. */
void egress_leave(Egress *egress);

/* --- events.c --- */

/* Returns the event of a refused name, address or connection. name, address and other may be NULL.
 */
EgressEvent egress_denial(const Egress *egress, EgressReason reason, const char *name,
                          const NetAddress *address, uint16_t port, const char *other);
/* Makes the same event and sends it. */
void egress_deny(Egress *egress, EgressReason reason, const char *name, const NetAddress *address,
                 uint16_t port, const char *other);
/* Sends an event to holt. If the socket is full, waits until holt has read other events. So no
 * decision is missing in the audit, and programs inside cannot cause events faster than holt reads
 * them. */
void egress_send(Egress *egress, const EgressEvent *event);
