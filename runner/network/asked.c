/* SPDX-License-Identifier: Apache-2.0 */
#include "network/asked.h"

#include <string.h>

#include "base/strings.h"
#include "policy/net/rules.h"

bool net_asked_is_name(const char *text) {
        NetRules rules = { 0 };
        const char *ignored;
        bool is_name = net_rules_add(&rules, text, &ignored) == 0 && rules.count == 1 &&
                       rules.items[0].kind == NET_NAME &&
                       rules.items[0].first == rules.items[0].last;

        net_rules_clear(&rules);
        return is_name;
}

/* Only a name in its usual form is shown: letters, digits, '-', '_' and '.'. */
bool net_asked_add(NetAskedList *list, const EgressEvent *event) {
        const NetDenial denial = { .event = *event };
        NetAsked *asked = &list->items[list->count];
        char name[NET_NAME_MAX + 1];

        if (list->count == NET_ASKED_MAX || event->port == 0 ||
            net_name_normal(event->name, strlen(event->name), name) < 0 ||
            !streq(name, event->name))
                return false;
        asked->id = event->id;
        net_denial_peer(&denial, asked->host);
        if (!net_asked_is_name(asked->host))
                return false;
        list->count++;
        return true;
}

bool net_asked_remove(NetAskedList *list, uint32_t id) {
        size_t i = 0;

        while (i < list->count && list->items[i].id != id)
                i++;
        if (i == list->count)
                return false;
        list->count--;
        memmove(list->items + i, list->items + i + 1, (list->count - i) * sizeof(*list->items));
        return i == 0;
}
