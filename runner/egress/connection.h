/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of a program inside: judged, connected outside, and moved. Connections to published
 * ports go the other way. */
#pragma once

#include "egress/egress.h"

enum { CONNECTIONS_MAX = 4096 };

/* Takes over fd, an accepted socket of a listener. */
void connection_accept(Egress *egress, int fd);
/* Takes over fd, an accepted socket of the host, whose bytes go to a port inside. */
void connection_publish(Egress *egress, int fd, uint16_t port);
