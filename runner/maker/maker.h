/* SPDX-License-Identifier: Apache-2.0 */
/* The maker: the process that sets up the sandbox's network, and later makes sockets in it.
 *
 * Theory of operation. holt-egress forks it before it does anything else. The maker enters the user
 * and network namespaces of the sandbox: the user who has made a user namespace has all
 * capabilities in it (user_namespaces(7)). It sets addresses and routes by rtnetlink, makes the
 * listeners, and passes each to holt-egress. Then it keeps two capabilities, which count only in
 * the sandbox's network, and waits for requests. It reads only messages of holt-egress and the
 * kernel. It is in the host's PID namespace, so no process of the sandbox can name it. When one of
 * the two processes ends, even by SIGKILL, the other one ends, too. */
#pragma once

#include "base/error.h"
#include "maker/listeners.h"
#include "network/protocol.h"

/* The purpose of a socket that the maker passes. */
typedef enum MadeKind {
        MADE_LISTENER,     /* For connections of programs inside. */
        MADE_RESOLVER_UDP, /* DNS. */
        MADE_RESOLVER_TCP,
        MADE_READY,    /* No socket: everything is made. error has the result. */
        MADE_SOCKET,   /* For a published port. */
        MADE_ROUTE,    /* No socket: only a route, for a live grant. */
        MADE_REDIRECT, /* No socket: many ports go to one listener. */
        MADE_QUEUE,    /* Packets that wait (queue.h). */
        MADE_ICMP,     /* For errors of packets that wait. */
} MadeKind;

/* One message of the maker. Most kinds come with a socket. */
typedef struct Made {
        uint32_t kind;
        bool has6;          /* For MADE_READY: the sandbox has IPv6. */
        NetAddress address; /* To which a listener is bound; all zero for every address. */
        uint16_t port;
        EgressReady ready; /* For MADE_READY. */
} Made;

/* A request to the maker: a listener, as in Made, a socket, a route or a redirect. */
typedef struct MakerRequest {
        uint32_t kind;
        NetAddress address;
        uint8_t prefix; /* Not 0: add a route of this length to the address first. */
        uint16_t port;
        RedirectPlan redirect; /* For MADE_REDIRECT, which needs no other field. */
} MakerRequest;

/* Receives the sandbox's net namespace from the setup socket. The caller owns *ret_fd. Returns 0 or
 * a negative errno. */
int maker_receive_network(int setup_fd, int *ret_fd);
/* Forks the maker. network_fd: the sandbox's net namespace, or FD_NONE if the maker receives it.
 * *ret_fd gets the socket to the maker. Returns 0 or a negative errno. */
int maker_fork(const NetPlan *plan, int setup_fd, int network_fd, int *ret_fd, Error *reterr);

/* Ends the maker and waits for its end, so that no zombie is left.
 */
void maker_end(int maker_fd);

/* Receives one message. *ret_fd is owned by the caller, or FD_NONE. Returns 0, -EAGAIN, or a
 * negative errno; -EPIPE if the maker has gone. */
int maker_receive(int maker_fd, Made *ret, int *ret_fd);
