/* SPDX-License-Identifier: Apache-2.0 */
/* The known providers, by their names. */
#include "base/nearest.h"
#include "base/strings.h"
#include "policy/routes/route.h"

const RouteProvider *route_provider(const char *name) {
        for (size_t i = 0; i < route_providers_count; i++)
                if (streq(route_providers[i].name, name))
                        return &route_providers[i];
        return NULL;
}

int route_refuse_name(const char *name, const char **ret_why) {
        Nearest nearest = { .word = name };

        for (size_t i = 0; i < route_providers_count; i++)
                nearest_try(&nearest, route_providers[i].name);
        return error_why(ret_why,
                         nearest.best
                                 ? route_provider(nearest.best)->nearly
                                 : "is not a known route; holt policy routes lists them\n"
                                   "Describe a route of your own in a policy file, as an object "
                                   "in bridge.routes.");
}
