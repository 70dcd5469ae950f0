/* SPDX-License-Identifier: Apache-2.0 */
#include "maker/listeners.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/strings.h"
#include "base/util.h"

static const uint8_t net_families[] = { AF_INET, AF_INET6 };

/* Whether the rule stands for more than one address. */
static bool rule_is_wide(const NetRule *rule) {
        if (rule->kind == NET_WILDCARD)
                return true;
        return rule->kind == NET_BLOCK &&
               rule->prefix < (rule->address.family == AF_INET ? 32 : 128);
}

static unsigned rule_ports(const NetRule *rule) {
        return (unsigned)rule->last - rule->first + 1;
}

/* Whether one listener takes the port on every address. */
static bool port_is_wide(const NetPlan *plan, const NetRules *rules, uint16_t port) {
        for (size_t i = 0; i < rules->count; i++)
                if (rule_is_wide(&rules->items[i]) && rules->items[i].first <= port &&
                    port <= rules->items[i].last && rule_ports(&rules->items[i]) <= plan->ports_max)
                        return true;
        return false;
}

/* Appends an item of `size` bytes to an array. */
static int array_add(void **array, size_t *count, const void *item, size_t size) {
        void *grown = reallocarray(*array, *count + 1, size);

        if (!grown)
                return -ENOMEM;
        *array = grown;
        memcpy((char *)grown + *count * size, item, size);
        (*count)++;
        return 0;
}

static int plan_listener(NetPlan *plan, const NetAddress *address, uint16_t port) {
        const ListenerPlan item = { .address = *address, .port = port };

        for (size_t i = 0; i < plan->listeners_count; i++)
                if (plan->listeners[i].port == port &&
                    memcmp(&plan->listeners[i].address, address, sizeof(*address)) == 0)
                        return 0;
        if (plan->listeners_count == NET_LISTENERS_MAX)
                return -E2BIG;
        return array_add((void **)&plan->listeners, &plan->listeners_count, &item, sizeof(item));
}

static int plan_number(NetPlan *plan, const char *name) {
        for (size_t i = 0; i < plan->names_count; i++)
                if (streq(plan->names[i], name))
                        return (int)i;
        if (array_add((void **)&plan->names, &plan->names_count, &name, sizeof(name)) < 0)
                return -ENOMEM;
        return (int)plan->names_count - 1;
}

/* Plans the listeners of one port of a rule. */
static int plan_port(NetPlan *plan, const NetRules *rules, const NetRule *rule, int number,
                     uint16_t port) {
        const bool wide = port_is_wide(plan, rules, port);
        int r = 0;

        if (rule->kind == NET_BLOCK && !wide)
                return plan_listener(plan, &rule->address, port);
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(net_families); i++) {
                const NetAddress any = { .family = net_families[i] };
                const NetAddress own = net_address_of_number(net_families[i], (unsigned)number);

                r = plan_listener(plan, wide ? &any : &own, port);
        }
        return r;
}

bool redirect_equal(const RedirectPlan *a, const RedirectPlan *b) {
        return net_address_equal(&a->address, &b->address) && a->prefix == b->prefix &&
               a->first == b->first && a->last == b->last;
}

static int plan_redirect_block(NetPlan *plan, const NetRule *rule, const NetAddress *address,
                               unsigned prefix) {
        const RedirectPlan item = { *address, (uint8_t)prefix, rule->first, rule->last };

        for (size_t i = 0; i < plan->redirects_count; i++)
                if (redirect_equal(&plan->redirects[i], &item))
                        return 0;
        return array_add((void **)&plan->redirects, &plan->redirects_count, &item, sizeof(item));
}

/* A name of a wildcard can have any address of the sandbox's blocks. */
static int plan_redirect_names(NetPlan *plan, const NetRule *rule, int number) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(net_families); i++) {
                const bool four = net_families[i] == AF_INET;
                const NetAddress own = net_address_of_number(net_families[i], (unsigned)number);
                const NetAddress all = net_address_own(net_families[i], 0);

                if (rule->kind == NET_NAME)
                        r = plan_redirect_block(plan, rule, &own, four ? 32 : 128);
                else
                        r = plan_redirect_block(plan, rule, &all,
                                                four ? NET_POOL4_PREFIX : NET_POOL6_PREFIX);
        }
        return r;
}

/* Plans the redirects of a rule, and their listeners. */
static int plan_redirects(NetPlan *plan, const NetRule *rule, int number) {
        int r = rule->kind == NET_BLOCK
                        ? plan_redirect_block(plan, rule, &rule->address, rule->prefix)
                        : plan_redirect_names(plan, rule, number);

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(net_families); i++) {
                const NetAddress to = net_address_own(net_families[i], NET_REDIRECT);

                r = plan_listener(plan, &to, NET_REDIRECT_PORT);
        }
        return r;
}

static int plan_rule(NetPlan *plan, const NetRules *rules, const NetRule *rule) {
        const RoutePlan route = { .address = rule->address, .prefix = rule->prefix };
        int r = 0, number = 0;

        if (rule->kind == NET_NAME)
                number = plan_number(plan, rule->name);
        if (number < 0)
                return number;
        if (rule->kind == NET_BLOCK)
                r = array_add((void **)&plan->routes, &plan->routes_count, &route, sizeof(route));
        if (r == 0 && rule_ports(rule) > plan->ports_max)
                return plan_redirects(plan, rule, number);
        for (unsigned port = rule->first; r == 0 && port <= rule->last; port++)
                r = plan_port(plan, rules, rule, number, (uint16_t)port);
        return r;
}

/* Plans the listeners of an imported port, except where a listener takes every address. */
static int plan_import(NetPlan *plan, const NetRules *rules, const NetPort *port) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(net_loopback); i++)
                if (!port_is_wide(plan, rules, port->inside))
                        r = plan_listener(plan, &net_loopback[i], port->inside);
        return r;
}

bool listener_is_import(const ListenerPlan *listener) {
        return net_address_equal(&listener->address, &net_loopback[0]) ||
               net_address_equal(&listener->address, &net_loopback[1]);
}

bool net_plan_has_imports(const NetPlan *plan) {
        for (size_t i = 0; i < plan->listeners_count; i++)
                if (listener_is_import(&plan->listeners[i]))
                        return true;
        return false;
}

static int net_plan_try(const NetRules *rules, const NetPort *imports, size_t imports_count,
                        unsigned ports_max, NetPlan *ret) {
        int r = 0;

        *ret = (NetPlan){ .ports_max = ports_max };
        for (size_t i = 0; r == 0 && i < rules->count; i++)
                r = plan_rule(ret, rules, &rules->items[i]);
        for (size_t i = 0; r == 0 && i < imports_count; i++)
                r = plan_import(ret, rules, &imports[i]);
        if (r < 0)
                net_plan_clear(ret);
        return r;
}

int net_plan_make(const NetRules *rules, const NetPort *imports, size_t imports_count,
                  NetPlan *ret) {
        int r = -E2BIG;

        for (unsigned max = NET_LISTENERS_MAX; r == -E2BIG && max > 0; max /= 2)
                r = net_plan_try(rules, imports, imports_count, max, ret);
        return r == -E2BIG ? net_plan_try(rules, imports, imports_count, 0, ret) : r;
}

int net_plan_add_proxy(NetPlan *plan, const NetRules *rules) {
        const NetAddress own = net_address_own(AF_INET, NET_OWN);

        return port_is_wide(plan, rules, NET_PROXY_PORT)
                       ? 0
                       : plan_listener(plan, &own, NET_PROXY_PORT);
}

void net_plan_clear(NetPlan *plan) {
        free(plan->listeners);
        free(plan->routes);
        free(plan->redirects);
        free(plan->names);
        *plan = (NetPlan){ 0 };
}
