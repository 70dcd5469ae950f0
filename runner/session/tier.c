/* SPDX-License-Identifier: Apache-2.0 */
#include "session/tier.h"

#include <errno.h>
#include <string.h>

#include "session/at-rest.h"

const char *const tier_names[TIERS + 1] = { "standard", "medium", "large", "xlarge", NULL };

static const struct {
        const char *memory;
        unsigned cpus;
} tiers[] = { { "1GiB", 1 }, { "2GiB", 2 }, { "4GiB", 4 }, { "8GiB", 8 } };
static_assert(ELEMENTSOF(tiers) == TIERS, "every tier has a size");

/* Returns TIERS for an unknown name. */
static unsigned find_tier(const char *name) {
        unsigned tier = 0;

        while (tier < TIERS && !streq(tier_names[tier], name))
                tier++;
        return tier;
}

unsigned tier_cpus(const char *tier) {
        const unsigned found = tier ? find_tier(tier) : TIERS;

        return found < TIERS ? tiers[found].cpus : 0;
}

int tier_apply(unsigned tier, bool keep_memory, Settings *settings, Error *reterr) {
        char *name = strdup(tier_names[tier]);

        if (!name)
                return error_oom(reterr);
        free(settings->tier);
        settings->tier = name;
        return keep_memory ? 0
                           : policy_set(&settings->policy, "limits.memory", tiers[tier].memory,
                                        ORIGIN_CALLER, "--tier", reterr);
}

int tier_from_name(const char *name, unsigned *ret, Error *reterr) {
        char quoted[80];
        int r;

        *ret = find_tier(name);
        if (*ret < TIERS)
                return 0;
        r = error_set(reterr, ERROR_USAGE, 0, "unknown tier \"%s\"",
                      str_quote(name, quoted, sizeof(quoted)));
        return error_cure(reterr, r, "Use standard, medium, large or xlarge.");
}

int tier_change(const char *session, const char *tier, Error *reterr) {
        _cleanup_(at_rest_close) AtRest rest = AT_REST_NONE;
        unsigned found;
        int r = tier_from_name(tier, &found, reterr);

        if (r < 0)
                return r;
        r = at_rest_open(session, &rest, reterr);
        if (r < 0)
                return r;
        r = tier_apply(found, false, &rest.settings, reterr);
        if (r < 0)
                return r;
        return settings_write(&rest.settings, rest.store, reterr);
}
