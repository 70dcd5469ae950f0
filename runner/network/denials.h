/* SPDX-License-Identifier: Apache-2.0 */
/* Names and connections that holt-egress refused, and allowed connections that failed. */
#pragma once

#include <stdbool.h>

#include "base/json-write.h"
#include "network/protocol.h"
#include "policy/net/rules.h"

enum {
        NET_DENIALS_MAX = 64,
        NET_DENIALS_RATE = 4,
        NET_PEER_TEXT = 320,
        NET_GRANT_TEXT = NET_PEER_TEXT + 8,
        NET_REASON_TEXT = 768,
};

typedef struct NetDenial {
        EgressEvent event; /* The first of this kind; checked by event_valid(). */
        uint64_t count;    /* All denials that were ever counted in this place. */
        uint64_t before;   /* The part of count from earlier denials in this place. */
        uint64_t last;     /* usec of time_now_usec(). */
        bool by_project;   /* The project's file does not allow the host, so no option can. */
} NetDenial;

/* If all places are in use, a new denial takes the place that has not changed for the longest time.
 * A program may cause very many denials, so at most NET_DENIALS_RATE of them per second get such a
 * place. */
typedef struct NetDenials {
        NetDenial items[NET_DENIALS_MAX];
        unsigned count;
        uint64_t total; /* All refusals and failures, even those that have no place. */
        uint64_t next;  /* usec of time_now_usec() from which on a new denial may take a used place.
                         */
} NetDenials;

/* The counts of all denials at one moment. */
typedef struct NetCounts {
        unsigned count;
        uint64_t total;
        uint64_t items[NET_DENIALS_MAX];
} NetCounts;

/* denials may be NULL. */
void net_denials_count(const NetDenials *denials, NetCounts *ret);

/* Returns how many refusals and failures had no place in denials, or have lost it. before: the
 * counts at an earlier moment, if only later ones are of interest, or NULL. */
uint64_t net_denials_omitted(const NetDenials *denials, const NetCounts *before);

/* Whether the event is well-formed: numbers in range, and strings that end and
 * have no control characters. */
bool net_event_valid(const EgressEvent *event);
/* Counts a refused or failed connection; other events are ignored. *denials is made when needed.
 * project: the rules of the project's file if it narrows the network, otherwise NULL. Returns the
 * denial if it is the first of its kind, otherwise NULL. */
const NetDenial *net_denials_note(NetDenials **denials, const EgressEvent *event,
                                  const NetRules *project);

/* Returns how often this denial has happened. */
uint64_t net_denial_count(const NetDenial *denial);
/* Whether the policy refused the connection. Otherwise a rule allowed it, and it failed. */
bool net_denial_refused(const NetDenial *denial);
/* Writes why the connection was refused. If a rule for the host has a reason, that is added. */
void net_denial_reason(const NetDenial *denial, char ret[NET_REASON_TEXT]);
/* Returns the errno that the program saw, or "NXDOMAIN". Static. */
const char *net_denial_answer(const NetDenial *denial);
/* Writes more about an allowed connection that failed than the answer says. Returns false, and
 * writes "", if nothing more is known. */
bool net_denial_failure(const NetDenial *denial, char ret[NET_REASON_TEXT]);
/* Returns why no rule of the caller can allow this host, or NULL if one can. Static. */
const char *net_denial_why_not(const NetDenial *denial);
/* Writes the host and the port, such as "example.org:443". */
void net_denial_peer(const NetDenial *denial, char ret[NET_PEER_TEXT]);
/* Writes the rule that would allow the host. Returns false if no rule can. */
bool net_denial_rule(const NetDenial *denial, char ret[NET_PEER_TEXT]);

/* Writes the option with the rule: "--net example.org". With a space, a rule that begins with "-"
 * would be an option. */
void net_denial_grant(const char *rule, char ret[NET_GRANT_TEXT]);

/* Writes the denials as objects into the open array. denials may be NULL. before: the counts at an
 * earlier moment, if only later denials are of interest, or NULL. session: a session has refused
 * the hosts, so the method session.allow can allow them. */
void net_denials_write(JsonWriter *w, const NetDenials *denials, const NetCounts *before,
                       bool session);
/* Writes the allowed connections that failed as the member "unreached", if there are any. denials
 * and before: as above. */
void net_denials_write_unreached(JsonWriter *w, const NetDenials *denials, const NetCounts *before);
/* Writes the members of one denial. */
void net_denial_write(JsonWriter *w, const NetDenial *denial, uint64_t count, bool session);
