/* SPDX-License-Identifier: Apache-2.0 */
/* Published ports, as holt-egress has opened them. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/json-write.h"
#include "network/protocol.h"
#include "policy/net/ports.h"

typedef struct NetPublished {
        NetPort *
                items; /* In the order in which they were opened. host is the real port, never 0. */
        size_t count;
} NetPublished;

void net_published_clear(NetPublished *published);
/* Adds or removes the port, if the event is a reply to a command that succeeded. Ignores other
 * events. Returns 0 or -ENOMEM. */
int net_published_note(NetPublished *published, const EgressEvent *event);
/* Returns the port of a reply. */
NetPort net_published_port(const EgressEvent *event);

/* Sets the error, for a reply to a command that failed. automatic: the option that publishes the
 * port at a free port of the host, such as "--publish 0:3000". Returns negative. */
int net_published_refuse(const EgressEvent *event, const char *automatic, Error *reterr);

/* Writes the members "address", such as "127.0.0.1:8080", and "port". */
void net_published_write_port(JsonWriter *w, const NetPort *port);
/* Writes the ports as objects into the open array. published may be NULL. */
void net_published_write(JsonWriter *w, const NetPublished *published);
