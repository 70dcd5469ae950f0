/* SPDX-License-Identifier: Apache-2.0 */
/* Computes which listeners and routes the rules need, without any system call.
 *
 * An exact name has an address of its own. Its listener binds only that address, so that programs
 * inside can use the same port on 127.0.0.1. For wildcards, and for blocks of several addresses,
 * one listener takes the port on every address. That port then needs no other listener, and can
 * have none.
 *
 * If the rules would need too many listeners, the rules with the most ports get none. The packet
 * filter redirects their ports to one listener (redirect-rules.h). */
#pragma once

#include "policy/net/ports.h"
#include "policy/net/rules.h"

typedef struct ListenerPlan {
        NetAddress address; /* All zero, except the family, for every address. */
        uint16_t port;
} ListenerPlan;

typedef struct RoutePlan {
        NetAddress address;
        uint8_t prefix;
} RoutePlan;

/* Ports of a block of addresses that go to the listener at NET_REDIRECT. */
typedef struct RedirectPlan {
        NetAddress address;
        uint8_t prefix;
        uint16_t first, last;
} RedirectPlan;

typedef struct NetPlan {
        ListenerPlan *listeners;
        size_t listeners_count;
        RoutePlan *routes;
        size_t routes_count;
        RedirectPlan *redirects;
        size_t redirects_count;
        unsigned ports_max; /* Rules with more ports have redirects, and others listeners. */
        const char **names; /* The exact names, in the order of their numbers; borrowed from the
                               rules. */
        size_t names_count;
        bool ports_only; /* No names and addresses: only ports are published or imported. */
} NetPlan;

/* Returns 0, -ENOMEM, or -E2BIG if there are more than NET_LISTENERS_MAX listeners even with
 * redirects. */
int net_plan_make(const NetRules *rules, const NetPort *imports, size_t imports_count,
                  NetPlan *ret);
/* Adds the listener of network.proxy, unless one listener takes its port on every address. Returns
 * like net_plan_make(). */
int net_plan_add_proxy(NetPlan *plan, const NetRules *rules);
void net_plan_clear(NetPlan *plan);

/* Whether the listener is that of an imported port. */
bool listener_is_import(const ListenerPlan *listener);
bool net_plan_has_imports(const NetPlan *plan);
bool redirect_equal(const RedirectPlan *a, const RedirectPlan *b);
