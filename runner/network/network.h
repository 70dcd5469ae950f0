/* SPDX-License-Identifier: Apache-2.0 */
/* Starts holt-egress (egress/egress.h), the process that carries a sandbox's connections, and
 * collects the connections that it refused. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "network/denials.h"
#include "network/protocol.h"
#include "network/published.h"
#include "policy/plan.h"

typedef struct Network {
        int control_fd;      /* FD_NONE if there is no holt-egress. */
        int setup_fd;        /* The child's end of the setup socket, until the child has it. */
        pid_t pid;           /* The process holt-egress, a child; 0 if there is none. */
        bool waits;          /* The process waits for its first command. */
        bool lost;           /* holt-egress has ended before it was told to. */
        EgressLevel level;   /* Known once holt-egress serves. */
        NetDenials *denials; /* NULL until something was refused or failed. */
        bool narrowed;       /* The project's file narrows the network to the rules in project. */
        NetRules project;
        NetPublished published;
} Network;

#define NETWORK_CLOSED                                                                             \
        { .control_fd = FD_NONE, .setup_fd = FD_NONE }

/* Whether the plan needs holt-egress: for names and addresses, or for ports. */
bool network_needed(const LaunchPlan *plan);
/* Starts holt-egress, which loads its libraries while holt goes on. network_start() must follow.
 * Returns 0 or a negative errno. */
int network_start_early(Network *ret, Error *reterr);
/* Gives holt-egress the rules of the plan, and opens its published ports. Starts it, unless it was
 * started early. Clears network after an error. Returns 0 or a negative errno. */
int network_start(const LaunchPlan *plan, Network *network, Error *reterr);
/* Starts holt-egress for a session without a network, in case its user forwards a port later. The
 * keeper must do this at its start, because it confines itself and can then start no program.
 * holt-egress keeps the sandbox's net namespace open, and waits for its first command. Returns 0 or
 * a negative errno. */
int network_start_later(Network *ret, Error *reterr);
/* Closes the child's end of the setup socket, once the child exists. */
void network_started(Network *network);

/* first: the denial, if the event is the first of its kind; otherwise NULL. */
typedef void (*NetworkFn)(void *data, const EgressEvent *event, const NetDenial *first);
/* Reads the events that have arrived, and counts denials. Calls fn, unless it is NULL, with every
 * event. */
void network_read(Network *network, NetworkFn fn, void *data);
/* Tells holt-egress to end, without waiting. */
void network_end(Network *network);
/* Ends holt-egress, reads its last events, and waits for its end. */
void network_stop(Network *network, NetworkFn fn, void *data);
void network_clear(Network *network);
/* Sends a command (protocol.h), whose reply is an event. Returns 0 or a negative errno; -ENOTCONN
 * if there is no holt-egress. */
int network_command(Network *network, const char *name, const char *value);
/* Decides whether holt-egress keeps the grant that it has just prepared (EGRESS_GRANTED). If the
 * command cannot be sent, holt-egress ends, so that no grant stays undecided. */
void network_decide(Network *network, bool keep);
