/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/once.h"

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "egress/ports.h"
#include "egress/serving.h"

typedef struct Once {
        struct Once *next;
        uint32_t id;
        NetRules rules;
        bool claimed, used;
} Once;

static void once_on_time(void *data);

/* --- lists --- */

static Once *once_free_one(Once *once) {
        net_rules_clear(&once->rules);
        free(once);
        return NULL;
}

int once_add(Once **list, uint32_t id, const char *rule) {
        Once *once = calloc(1, sizeof(*once));
        const char *why;
        int r = once ? net_rules_add(&once->rules, rule, &why) : -ENOMEM;

        if (r < 0) {
                free(once);
                return r;
        }
        once->id = id;
        list_append(list, once);
        return 0;
}

void once_free(Once **list) {
        list_each_safe(once, *list)
                (void)once_free_one(once);
        *list = NULL;
}

size_t once_count(const Once *list) {
        size_t count = 0;

        for (const Once *once = list; once; once = once->next)
                count++;
        return count;
}

size_t once_rules(const Once *list, NetRule *items) {
        size_t count = 0;

        for (const Once *once = list; once; once = once->next)
                for (size_t i = 0; i < once->rules.count; i++, count++)
                        if (items)
                                items[count] = once->rules.items[i];
        return count;
}

/* Without memory for the timer, unneeded listeners stay open. */
void once_keep(Egress *egress, Once **list) {
        if (!egress->once_timer)
                (void)loop_timer_new(egress->loop, once_on_time, egress, &egress->once_timer, NULL);
        list_each_safe(once, *list)
                list_append(&egress->once, once);
        *list = NULL;
}

/* --- judging --- */

bool once_names(const Egress *egress, const char *name) {
        for (const Once *once = egress->once; once; once = once->next)
                if (!once->used && net_rules_name(&once->rules, name))
                        return true;
        return false;
}

bool once_allows(const Once *once, const char *name, const NetAddress *address, uint16_t port) {
        return name ? net_rules_find(&once->rules, name, port) != NULL
                    : net_rules_find_address(&once->rules, address, port) != NULL;
}

static Once *once_find(const Egress *egress, bool claimed, const char *name,
                       const NetAddress *address, uint16_t port) {
        for (Once *once = egress->once; once; once = once->next)
                if (once->claimed == claimed && once_allows(once, name, address, port))
                        return once;
        return NULL;
}

bool once_taken(const Egress *egress, const char *name, const NetAddress *address, uint16_t port) {
        return once_find(egress, true, name, address, port) != NULL;
}

Once *once_claim(const Egress *egress, const char *name, const NetAddress *address, uint16_t port) {
        Once *once = once_find(egress, false, name, address, port);

        if (once)
                once->claimed = true;
        return once;
}

void once_use(Egress *egress, Once *once) {
        EgressEvent event = { .type = EGRESS_USED };

        if (!once || once->used)
                return;
        once->used = true;
        event.id = once->id;
        egress_send(egress, &event);
}

/* --- the end --- */

static bool listener_has_port(const NetRules *rules, uint16_t port) {
        for (size_t i = 0; i < rules->count; i++)
                if (rules->items[i].first <= port && port <= rules->items[i].last)
                        return true;
        return false;
}

/* Whether a connection through the listener may be allowed by these rules. A listener for every
 * address serves all rules with its port. */
static bool listener_serves(const Egress *egress, const NetRules *rules, const ListenerPlan *at) {
        const NetAddress any = { .family = at->address.family };
        const int number = net_address_number(&at->address);
        const char *name = number < 0 ? NULL : names_text(egress->names, (unsigned)number);

        if (net_address_equal(&at->address, &any))
                return listener_has_port(rules, at->port);
        if (name)
                return net_rules_find(rules, name, at->port) != NULL;
        return net_rules_find_address(rules, &at->address, at->port) != NULL;
}

/* The ports of imports and of the proxy inside belong to no rule. The listener for redirected
 * connections serves all rules. */
static bool listener_is_lasting(const Egress *egress, const ListenerPlan *at) {
        const NetAddress redirect = net_address_own(at->address.family, NET_REDIRECT);
        const NetPort *imports;
        const size_t count = ports_imports(egress, &imports);

        for (size_t i = 0; i < count; i++)
                if (imports[i].inside == at->port)
                        return true;
        return net_address_equal(&at->address, &redirect) ||
               (egress->proxy && at->port == NET_PROXY_PORT);
}

static bool listener_needed(const Egress *egress, const ListenerPlan *at) {
        if (listener_is_lasting(egress, at) || listener_serves(egress, &egress->rules, at))
                return true;
        for (const Once *once = egress->once; once; once = once->next)
                if (listener_serves(egress, &once->rules, at))
                        return true;
        return false;
}

/* While a grant is carried out, it may count on a listener that exists. At its end, it calls
 * once_prune(). */
static void once_on_time(void *data) {
        Egress *egress = data;

        if (!egress->grants)
                serving_prune(egress, listener_needed);
}

/* The caller may be in a loop over the listeners, so they are closed later. */
void once_prune(const Egress *egress) {
        if (egress->once_timer)
                loop_timer_set(egress->once_timer, 1);
}

Once *once_release(Egress *egress, Once *once) {
        if (!once)
                return NULL;
        once->claimed = false;
        if (!once->used)
                return NULL;
        (void)list_remove(&egress->once, once);
        once_prune(egress);
        return once_free_one(once);
}
