/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/route-fields.h"

#ifdef HOLT_FULL

#include "policy/routes/route.h"

int route_field_check(const char *text, const char **ret_why) {
        return text[0] == '{' || route_provider(text) ? 0 : route_refuse_name(text, ret_why);
}

/* Compares the last route, which is new, with the others. */
int route_field_added(Policy *policy, const char *where, Error *reterr) {
        const StrList *routes = &policy->routes;
        char added[ROUTE_NAME_MAX + 1], name[ROUTE_NAME_MAX + 1];
        int r;

        if (routes->count > ROUTES_MAX) {
                (void)error_set(reterr, ERROR_POLICY, 0, "%s: more than %d routes", where,
                                ROUTES_MAX);
                return -E2BIG;
        }
        if (route_text_name(routes->items[routes->count - 1], added) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i + 1 < routes->count; i++)
                if (route_text_name(routes->items[i], name) == 0 && streq(name, added)) {
                        r = error_set(reterr, ERROR_POLICY, 0, "%s: route \"%s\" is given twice",
                                      where, name);
                        return error_cure(reterr, r, "Give each route a name of its own.");
                }
        return 0;
}

#else

int route_field_check(const char *text, const char **ret_why) {
        (void)text;
        (void)ret_why;
        return 0;
}

int route_field_added(Policy *policy, const char *where, Error *reterr) {
        (void)policy;
        (void)where;
        (void)reterr;
        return 0;
}

#endif

int route_field_set(Policy *policy, const char *value, Error *reterr) {
        int r;

        if (value[0] != '{')
                return policy_set(policy, "bridge.routes", value, ORIGIN_CALLER, "--route", reterr);
        r = error_set(reterr, ERROR_POLICY, 0, "--route takes a name, and not an object");
        return error_cure(reterr, r, "Write the object into a policy file: --policy FILE");
}
