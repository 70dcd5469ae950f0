/* SPDX-License-Identifier: Apache-2.0 */
/* The known providers, by their names. */
#include <stdio.h>

#include "base/nearest.h"
#include "base/strings.h"
#include "policy/routes/route.h"

const RouteProvider *route_provider(const char *name) {
        for (size_t i = 0; i < route_providers_count; i++)
                if (streq(route_providers[i].name, name))
                        return &route_providers[i];
        return NULL;
}

/* Names all routes, because a client of holt serve has no command that lists them. */
static const char *route_unknown(void) {
        static char text[400];
        size_t length = (size_t)snprintf(text, sizeof(text),
                                         "is not a known route; the known routes are");

        for (size_t i = 0; i < route_providers_count && length < sizeof(text); i++)
                length += (size_t)snprintf(text + length, sizeof(text) - length, "%s %s",
                                           i > 0 ? "," : "", route_providers[i].name);
        if (length < sizeof(text))
                (void)snprintf(text + length, sizeof(text) - length, "%s",
                               "\nDescribe a route of your own in a policy file, as an object in "
                               "bridge.routes.");
        return text;
}

int route_refuse_name(const char *name, const char **ret_why) {
        Nearest nearest = { .word = name };
        const RouteProvider *provider;

        for (size_t i = 0; i < route_providers_count; i++)
                nearest_try(&nearest, route_providers[i].name);
        provider = nearest.best ? route_provider(nearest.best) : NULL;
        return error_why(ret_why, provider ? provider->nearly : route_unknown());
}
