/* SPDX-License-Identifier: Apache-2.0 */
/* The named sets of rules, by their names. */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/strings.h"
#include "base/util.h"
#include "policy/net/rules.h"

const NetSet *net_set(const char *name) {
        for (size_t i = 0; i < net_sets_count; i++)
                if (streq(net_sets[i].name, name))
                        return &net_sets[i];
        return NULL;
}

static bool net_set_has(const NetSet *set, const char *name) {
        NetRules rules = { 0 };
        const char *ignored;
        bool has = false;

        for (const char *const *rule = set->rules; *rule && !has; rule++)
                has = net_rules_add(&rules, *rule, &ignored) == 0 && net_rules_name(&rules, name);
        net_rules_clear(&rules);
        return has;
}

static size_t net_set_size(const NetSet *set) {
        size_t size = 0;

        while (set->rules[size])
                size++;
        return size;
}

const NetSet *net_set_with(const char *name) {
        const NetSet *smallest = NULL;

        for (size_t i = 0; i < net_sets_count; i++)
                if (net_set_has(&net_sets[i], name) &&
                    (!smallest || net_set_size(&net_sets[i]) < net_set_size(smallest)))
                        smallest = &net_sets[i];
        return smallest;
}

/* Names all sets, because a client of holt serve has no command that lists them. */
static const char *net_sets_unknown(void) {
        static char text[400];
        size_t length = (size_t)snprintf(text, sizeof(text), "is not a known set; the sets are");

        for (size_t i = 0; i < net_sets_count && length < sizeof(text); i++)
                length += (size_t)snprintf(text + length, sizeof(text) - length, "%s @%s",
                                           i > 0 ? "," : "", net_sets[i].name);
        return text;
}

int net_set_refuse(const char *name, const char **ret_why) {
        Nearest nearest = { .word = name };
        const NetSet *set;

        for (size_t i = 0; i < net_sets_count; i++)
                nearest_try(&nearest, net_sets[i].name);
        set = nearest.best ? net_set(nearest.best) : NULL;
        return error_why(ret_why, set ? set->nearly : net_sets_unknown());
}
