/* SPDX-License-Identifier: Apache-2.0 */
#include "session/routes.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/json.h"
#include "policy/plan-routes.h"

enum { TOKEN_BYTES = 20 };

/* The prefix tells people who find a token that it is worth nothing. */
static char *routes_make_token(void) {
        static const char prefix[] = "holt-";
        unsigned char bytes[TOKEN_BYTES];
        char *token = malloc(sizeof(prefix) + (size_t)TOKEN_BYTES * 2);

        if (!token || getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
                free(token);
                return NULL;
        }
        memcpy(token, prefix, sizeof(prefix));
        for (size_t i = 0; i < sizeof(bytes); i++)
                (void)snprintf(token + sizeof(prefix) - 1 + i * 2, 3, "%02x", bytes[i]);
        return token;
}

static int refuse_unset(const char *route, const char *name, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, 0,
                          "the route %s needs the environment variable %s, which is not set", route,
                          name);

        return error_cure(reterr, r, "Set it in the environment of holt: %s=... holt run", name);
}

static int check_env(const char *text, Error *reterr) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        int r = json_parse(text, strlen(text), "route", &document, reterr);
        const JsonValue *route = r < 0 ? NULL : json_root(document);

        for (const JsonValue *inject = json_first(json_member(route, "inject")); r == 0 && inject;
             inject = json_next(inject)) {
                const char *name = json_member_string(inject, "env");
                const char *value = name ? getenv(name) : NULL;

                if (name && (!value || !*value))
                        r = refuse_unset(json_member_text(route, "name"), name, reterr);
        }
        return r;
}

int routes_prepare(const Policy *policy, LaunchPlan *plan, bool needs_env, Error *reterr) {
        int r;

        if (policy->routes.count == 0)
                return 0;
        plan->route_token = routes_make_token();
        if (!plan->route_token)
                return error_oom(reterr);
        r = routes_plan(policy, plan->route_token, plan, reterr);
        for (size_t i = 0; r == 0 && needs_env && i < plan->routes.count; i++)
                r = check_env(plan->routes.items[i], reterr);
        return r;
}
