/* SPDX-License-Identifier: Apache-2.0 */
/* Starts holt-gateway (gateway/gateway.h), the process that carries a sandbox's requests to
 * services, and collects what it refused. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/json-write.h"
#include "network/gateway-protocol.h"
#include "policy/plan.h"

enum { GATEWAY_DENIALS_MAX = 32 };

/* Requests of one route that had the same method and path, and the same end. */
typedef struct GatewayDenial {
        GatewayEvent event; /* the first of them; checked by gateway_read() */
        uint64_t count;
} GatewayDenial;

typedef struct GatewayDenials {
        GatewayDenial items[GATEWAY_DENIALS_MAX];
        unsigned count;
        uint64_t omitted; /* refusals and failures that had no place */
} GatewayDenials;

/* The counts of all denials at one moment. */
typedef struct GatewayCounts {
        unsigned count;
        uint64_t items[GATEWAY_DENIALS_MAX];
} GatewayCounts;

typedef struct GatewayLink {
        int control_fd;          /* FD_NONE if there is no holt-gateway */
        int setup_fd;            /* the child's end of the setup socket, until the child has it */
        pid_t pid;               /* a child; 0 if there is none */
        bool ready;              /* holt-gateway serves */
        bool lost;               /* holt-gateway has ended before it was told to */
        GatewayDenials *denials; /* NULL until something was refused or failed */
} GatewayLink;

#define GATEWAY_CLOSED                                                                             \
        { .control_fd = FD_NONE, .setup_fd = FD_NONE }

/* Starts holt-gateway with the routes of the plan. Call it before holt changes its user or erases
 * its environment, which may contain the credentials. Without routes, there is no process. Returns
 * 0 or a negative errno. */
int gateway_start(const LaunchPlan *plan, GatewayLink *ret, Error *reterr);
/* Waits for the certificates that holt-gateway has made, if the plan has tls_hosts, and adds them
 * to the plan's files. Returns 0 or a negative errno. */
int gateway_take_trust(const GatewayLink *gateway, LaunchPlan *plan, Error *reterr);
/* Closes the child's end of the setup socket, once the child exists. */
void gateway_started(GatewayLink *gateway);

/* first: the denial, if the event is the first of its kind; otherwise NULL. */
typedef void (*GatewayFn)(void *data, const GatewayEvent *event, const GatewayDenial *first);
/* Reads the events that have arrived. Calls fn, unless it is NULL, with every event. */
void gateway_read(GatewayLink *gateway, GatewayFn fn, void *data);
/* Sends a command (gateway-protocol.h). secrets_fd: a memory file with variables, or FD_NONE; the
 * caller keeps it. Returns 0 or a negative errno. The reply is an event for fn of gateway_read().
 */
int gateway_command(const GatewayLink *gateway, const char *text, size_t length, int secrets_fd);
/* Ends holt-gateway, and reads its last events. */
void gateway_stop(GatewayLink *gateway, GatewayFn fn, void *data);
void gateway_clear(GatewayLink *gateway);

/* denials may be NULL. */
void gateway_denials_count(const GatewayDenials *denials, GatewayCounts *ret);
/* Returns how often number i has happened since `before`, or at all if that is NULL. */
uint64_t gateway_denial_since(const GatewayDenials *denials, unsigned i,
                              const GatewayCounts *before);
/* Writes the denials as objects into the open array. denials may be NULL. before: the counts at an
 * earlier moment, if only later denials are of interest, or NULL. */
void gateway_denials_write(JsonWriter *w, const GatewayDenials *denials,
                           const GatewayCounts *before);
/* Writes the members of one denial. */
void gateway_denial_write(JsonWriter *w, const GatewayDenial *denial, uint64_t count);
/* Writes "POST /v1/files of the route openai". */
enum { GATEWAY_WHAT_TEXT = 300 };
void gateway_denial_what(const GatewayDenial *denial, char ret[GATEWAY_WHAT_TEXT]);
