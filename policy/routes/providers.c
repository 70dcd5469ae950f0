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
        const RouteProvider *provider;

        for (size_t i = 0; i < route_providers_count; i++)
                nearest_try(&nearest, route_providers[i].name);
        provider = nearest.best ? route_provider(nearest.best) : NULL;
        return error_why(ret_why,
                         provider ? provider->nearly
                                  : "is not a known route; holt policy routes lists them\n"
                                    "Describe a route of your own in a policy file, as an object "
                                    "in bridge.routes.");
}
