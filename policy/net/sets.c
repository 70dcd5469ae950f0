/* SPDX-License-Identifier: Apache-2.0 */
/* The named sets of rules, by their names. */
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

const NetSet *net_set_with(const char *name) {
        for (size_t i = 0; i < net_sets_count; i++)
                if (net_set_has(&net_sets[i], name))
                        return &net_sets[i];
        return NULL;
}

int net_set_refuse(const char *name, const char **ret_why) {
        Nearest nearest = { .word = name };
        const NetSet *set;

        for (size_t i = 0; i < net_sets_count; i++)
                nearest_try(&nearest, net_sets[i].name);
        set = nearest.best ? net_set(nearest.best) : NULL;
        return error_why(ret_why,
                         set ? set->nearly : "is not a known set; holt policy list lists the sets");
}
