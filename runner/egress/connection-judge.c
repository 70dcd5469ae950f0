/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/socket.h>

#include "egress/connection-internal.h"
#include "egress/once.h"
#include "egress/ports.h"
#include "egress/questions.h"
#include "egress/resolver.h"
#include "egress/upstream.h"

enum { ABANDONED_TIME = 1000000 }; /* usec in which a listener accepts what was let in. */

/* Adds an address of the name, unless it is a special one that no rule with addresses allows. */
static void connection_add_target(Connection *c, const NetAddress *address, const char **refused) {
        const char *why = net_address_forbidden(address);

        if (why && !net_rules_find_address(&c->egress->rules, address, c->port))
                *refused = why;
        else
                c->targets[c->targets_count++] = *address;
}

static void connection_on_addresses(void *data, const NameResult *result) {
        Connection *c = data;
        const char *refused = NULL;

        c->state = CONNECTION_CONNECTS;
        /* Addresses of the family that the program has chosen come first. */
        for (int other = 0; other <= 1; other++)
                for (size_t i = 0; i < result->count; i++)
                        if ((result->items[i].family != c->asked.family) == other)
                                connection_add_target(c, &result->items[i], &refused);
        if (c->targets_count == 0 && refused)
                return connection_refuse(c, EGRESS_PRIVATE, refused);
        c->errnum = EHOSTUNREACH;
        if (c->targets_count == 0)
                return connection_unreached(c, c->answered ? EGRESS_YES_UNRESOLVED
                                                           : EGRESS_UNRESOLVED);
        connection_try(c);
}

void connection_try_loopback(Connection *c, uint16_t port) {
        c->state = CONNECTION_CONNECTS;
        c->target_port = port;
        for (size_t i = 0; i < ELEMENTSOF(net_loopback); i++)
                c->targets[c->targets_count++] = net_loopback[i];
        connection_try(c);
}

/* A proxy outside resolves the name itself, so its addresses are unknown here. */
static void connection_on_upstream(void *data, const NameResult *result) {
        Connection *c = data;

        c->state = CONNECTION_CONNECTS;
        for (size_t i = 0; i < result->count; i++)
                c->targets[c->targets_count++] = result->items[i];
        c->errnum = EHOSTUNREACH;
        connection_try(c);
}

/* Finds the addresses to connect to, for a connection that the rules allow. */
static void connection_resolve(Connection *c) {
        Egress *egress = c->egress;

        c->tunnels = egress->upstream != NULL;
        if (c->tunnels)
                return upstream_resolve(egress, &c->target_port, connection_on_upstream, c);
        if (c->number >= 0)
                return names_resolve(egress->names, (unsigned)c->number, connection_on_addresses,
                                     c);
        c->targets[c->targets_count++] = c->asked;
        c->state = CONNECTION_CONNECTS;
        connection_try(c);
}

/* Ends a connection that has claimed a one-time grant for the same host, if its program has given
 * up before the packet was let in. Otherwise a listener would have accepted it at once. */
static void connection_end_abandoned(const Connection *c, const char *name) {
        const uint64_t now = time_now_usec();

        for (Connection *other = c->egress->connections; other; other = other->next)
                if (other->state == CONNECTION_ENTERS && other->once &&
                    other->entered + ABANDONED_TIME < now &&
                    once_allows(other->once, name, &c->asked, c->port))
                        return connection_end(other, ECONNRESET);
}

/* Whether a rule allows the name, or the address if name is NULL. Without such a rule, claims a
 * one-time grant. */
static bool connection_allowed(Connection *c, const char *name) {
        const NetRules *rules = &c->egress->rules;

        if (name ? net_rules_find(rules, name, c->port)
                 : net_rules_find_address(rules, &c->asked, c->port))
                return true;
        if (c->egress->once)
                connection_end_abandoned(c, name);
        c->once = once_claim(c->egress, name, &c->asked, c->port);
        return c->once != NULL;
}

/* Returns why nothing allows the name, or the address if name is NULL. A name that has an address
 * inside but no rule had a one-time grant. */
static EgressReason connection_reason(const Connection *c, const char *name) {
        const Egress *egress = c->egress;

        if (once_taken(egress, name, &c->asked, c->port))
                return EGRESS_USED_UP;
        if (!name)
                return net_rules_address(&egress->rules, &c->asked) ? EGRESS_NO_PORT
                                                                    : EGRESS_NO_ADDRESS;
        return net_rules_name(&egress->rules, name) || once_names(egress, name) ? EGRESS_NO_PORT
                                                                                : EGRESS_USED_UP;
}

void connection_judge(Connection *c) {
        Egress *egress = c->egress;
        const NetPort *imported = ports_imported(egress, &c->asked, c->port);
        EgressReason reason;
        const char *name;

        if (imported)
                return connection_try_loopback(c, imported->host);
        c->number = net_address_number(&c->asked);
        name = connection_name(c);
        if (!name)
                c->number = -1;
        if (connection_allowed(c, name))
                return connection_resolve(c);
        reason = connection_reason(c, name);
        if (!questions_ask(c, &reason))
                connection_refuse(c, reason, NULL);
}

void connection_judge_target(Connection *c, const Authority *target) {
        const NetRules *rules = &c->egress->rules;
        EgressReason reason = EGRESS_NO_RULE;
        int number;

        c->asked = net_address_unmapped(&target->address);
        c->port = c->target_port = target->port;
        if (target->address.family == 0) {
                if (!net_rules_name(rules, target->host) && !once_names(c->egress, target->host) &&
                    !questions_take_name(c->egress, target->host, &reason))
                        return connection_refuse_host(c, reason, target->host, NULL, NULL);
                number = resolver_number(c->egress, target->host);
                if (number < 0)
                        return connection_refuse_host(c, EGRESS_BAD_NAME, target->host, NULL, NULL);
                c->asked = net_address_of_number(AF_INET, (unsigned)number);
        }
        connection_judge(c);
}
