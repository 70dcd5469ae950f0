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

int net_set_refuse(const char *name, const char **ret_why) {
        Nearest nearest = { .word = name };

        for (size_t i = 0; i < net_sets_count; i++)
                nearest_try(&nearest, net_sets[i].name);
        return error_why(ret_why, nearest.best ? net_set(nearest.best)->nearly
                                               : "is not a known set; holt policy list lists the "
                                                 "sets");
}
