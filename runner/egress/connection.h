/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of programs inside: holt-egress judges each, connects outside, and moves its bytes.
 * Connections to published ports go in the other direction. */
#pragma once

#include "egress/egress.h"
#include "egress/queue.h"

enum { CONNECTIONS_MAX = 4096 };

/* Takes over fd, an accepted socket of a listener, with the addresses and ports of `syn`. */
void connection_accept(Egress *egress, int fd, const Syn *syn);
/* Takes over held, a packet that waits. Sets *ret, a member of held, before it does anything else,
 * because it may free held. */
void connection_hold(Egress *egress, Held *held, const Syn *syn, struct Connection **ret);
/* Takes over fd, an accepted socket of the host, whose bytes go to a port inside. */
void connection_publish(Egress *egress, int fd, uint16_t port);
/* Takes over fd, a client of the proxy inside, and its request. */
void connection_ask(Egress *egress, int fd, struct Proxy *proxy);
