/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of a program inside: judged, connected outside, and moved. */
#pragma once

#include "egress/egress.h"

enum { CONNECTIONS_MAX = 4096 };

/* Takes over fd, an accepted socket of a listener. */
void connection_accept(Egress *egress, int fd);
