/* SPDX-License-Identifier: Apache-2.0 */
/* The DNS server of the sandbox, over UDP and TCP. */
#pragma once

#include "egress/egress.h"

typedef struct Resolver Resolver;

/* Takes over the sockets: a bound one for UDP, and a listening one. Returns 0 or a negative errno.
 */
int resolver_new(Egress *egress, int udp_fd, int tcp_fd, Error *reterr);

/* Returns the number of a name that a rule allows, or -ENOSPC if the name is too long, or one of
 * too many. A new name gets a number. */
int resolver_number(Egress *egress, const char *name);
