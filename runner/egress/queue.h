/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that wait in the kernel's queue until holt-egress knows how they end.
 *
 * Theory of operation. The packet filter (queue-rules.h) holds the first packet, the SYN, of each
 * connection. holt-egress judges it and connects outside. If that succeeds, the packet goes on, a
 * listener accepts the connection, and the socket outside is waiting for it. Otherwise the packet
 * is rejected, and the program gets the error that it would get outside.
 *
 * The packet's addresses and ports identify the connection. If the kernel sends a packet again, the
 * copy is dropped, and the first one still waits. A program may take over the port of another one.
 * It gains nothing, because all programs of a sandbox have the same rights in the network. */
#pragma once

#include "egress/egress.h"
#include "wire/syn.h"

typedef struct Held Held;

/* Takes over fd, the queue's socket. Returns 0 or a negative errno. */
int queue_new(Egress *egress, int fd, Error *reterr);

/* Takes over fd, a raw ICMP socket in the sandbox, by which holt-egress sends errors that the
 * kernel would not send. */
void queue_send_errors(Egress *egress, int fd);

/* Lets the packet in. The connection is accepted soon, and queue_take() finds it. */
void queue_let_in(Egress *egress, Held *held);
/* Frees held. If the packet still waits, it is rejected so that the program gets errnum. Accepts
 * NULL. Returns NULL. */
Held *queue_release(Egress *egress, Held *held, int errnum);

/* Finds the connection of a socket that was accepted, and frees its Held. Returns NULL if the
 * connection has not waited in the queue. */
struct Connection *queue_take(Egress *egress, const Syn *syn);
