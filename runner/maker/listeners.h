/* SPDX-License-Identifier: Apache-2.0 */
/* Which listeners and routes the rules need. Pure.
 *
 * An exact name has an address of its own. Its listener binds only that address, so that programs
 * inside can use the same port on 127.0.0.1. For wildcards, and for blocks of several addresses,
 * one listener takes the port on every address. That port then needs no other listener, and can
 * have none. */
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

typedef struct NetPlan {
        ListenerPlan *listeners;
        size_t listeners_count;
        RoutePlan *routes;
        size_t routes_count;
        const char **names; /* The exact names, in the order of their numbers; borrowed from the
                               rules. */
        size_t names_count;
        bool ports_only; /* No names and addresses: only ports are published or imported. */
} NetPlan;

/* Returns 0, -ENOMEM, or -E2BIG if the rules need more than NET_LISTENERS_MAX listeners. */
int net_plan_make(const NetRules *rules, const NetPort *imports, size_t imports_count,
                  NetPlan *ret);
/* Adds the listener of network.proxy, unless one listener takes its port of every address. Returns
 * like net_plan_make(). */
int net_plan_add_proxy(NetPlan *plan, const NetRules *rules);
void net_plan_clear(NetPlan *plan);
