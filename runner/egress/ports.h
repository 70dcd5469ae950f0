/* SPDX-License-Identifier: Apache-2.0 */
/* Ports that the sandbox shares with the host.
 *
 * A published port has a listener on the host. Its connections go to the port on the sandbox's
 * loopback, by sockets that the maker makes there. An imported port has listeners on the sandbox's
 * loopback (listeners.h). Their connections go to one port of the host's loopback, and nowhere
 * else. */
#pragma once

#include "egress/egress.h"
#include "policy/net/ports.h"

enum { PUBLISHED_MAX = 256 };

/* Add the port of a setting: [ADDRESS:]HOSTPORT:PORT or HOSTPORT[:PORT]. */
int ports_set_publish(Egress *egress, const char *value, Error *reterr);
int ports_set_import(Egress *egress, const char *value, Error *reterr);

/* Opens the listeners of the settings, and tells holt the result of each. */
int ports_open(Egress *egress, Error *reterr);

/* A command of holt: opens the port, and tells holt the result. */
void ports_publish(Egress *egress, const char *value);
/* A command of holt: closes the listener of the port. The value has the host's real port, never 0.
 * Open connections continue. */
void ports_unpublish(Egress *egress, const char *value);

/* The imported ports. Borrowed; returns their number. */
size_t ports_imports(const Egress *egress, const NetPort **ret);
/* Returns the port that a program inside has asked for, if it is an imported one, or NULL. */
const NetPort *ports_imported(const Egress *egress, const NetAddress *asked, uint16_t port);
