/* SPDX-License-Identifier: Apache-2.0 */
/* Names and connections that holt-egress refused, and allowed connections that failed. */
#pragma once

#include <stdbool.h>

#include "base/json-write.h"
#include "network/protocol.h"

enum {
        NET_DENIALS_MAX = 64,
        NET_DENIALS_RATE = 4,
        NET_PEER_TEXT = 320,
        NET_REASON_TEXT = 768,
};

typedef struct NetDenial {
        EgressEvent event; /* The first of this kind; checked by event_valid(). */
        uint64_t count;    /* Also counts those before, whose place it has taken... */
        uint64_t before;   /* ...and their number. */
        uint64_t last;     /* usec of time_now_usec(). */
} NetDenial;

/* When all places are used, a new denial takes the one that has been quiet for longest. Since a
 * program may cause very many, only NET_DENIALS_RATE of them per second do. */
typedef struct NetDenials {
        NetDenial items[NET_DENIALS_MAX];
        unsigned count;
        uint64_t next; /* usec of time_now_usec() at which the next one may take a place. */
} NetDenials;

/* The counts of all denials at one moment. */
typedef struct NetCounts {
        unsigned count;
        uint64_t items[NET_DENIALS_MAX];
} NetCounts;

/* denials may be NULL. */
void net_denials_count(const NetDenials *denials, NetCounts *ret);

/* Whether the event is well-formed: numbers in range, and strings that end and
 * have no control characters. */
bool net_event_valid(const EgressEvent *event);
/* Counts a refused or failed connection; other events are ignored. *denials is made when needed.
 * Returns the denial if it is the first of its kind, otherwise NULL. */
const NetDenial *net_denials_note(NetDenials **denials, const EgressEvent *event);

/* How many of this denial there were. */
uint64_t net_denial_count(const NetDenial *denial);
/* Whether the policy refused it; otherwise it was allowed and failed. */
bool net_denial_refused(const NetDenial *denial);
/* Writes why it was refused, with the reason that a rule for the host has. */
void net_denial_reason(const NetDenial *denial, char ret[NET_REASON_TEXT]);
/* Returns the errno that the program saw, or "NXDOMAIN". Static. */
const char *net_denial_answer(const NetDenial *denial);
/* Returns why no rule would allow it, or NULL if one does. Static. */
const char *net_denial_why_not(const NetDenial *denial);
/* Writes the host and the port, such as "example.org:443". */
void net_denial_peer(const NetDenial *denial, char ret[NET_PEER_TEXT]);
/* Writes the rule that allows it. Returns false if no rule does. */
bool net_denial_rule(const NetDenial *denial, char ret[NET_PEER_TEXT]);

/* Writes the denials as objects into the open array. denials may be NULL. before: the counts from
 * which on they count, or NULL. session: a session has refused it, so the method session.allow can
 * allow it. */
void net_denials_write(JsonWriter *w, const NetDenials *denials, const NetCounts *before,
                       bool session);
/* Writes the members of one denial. */
void net_denial_write(JsonWriter *w, const NetDenial *denial, uint64_t count, bool session);
