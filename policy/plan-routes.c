/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/plan-routes.h"

#include <errno.h>
#include <string.h>

#include "policy/plan-files.h"
#include "policy/plan-parts.h"
#include "policy/routes/route.h"

typedef struct RoutesPlan {
        const Policy *policy;
        const char *token;
        LaunchPlan *plan;
        StrList names;
        Error *reterr;
} RoutesPlan;

/* Returns the place of an item: "ci.json: $.bridge.routes[0]" or "--route". The policy does not
 * know that of every item. Owned by the caller; NULL if memory is out. */
static char *routes_place(const Policy *policy, const StrList *items, size_t i) {
        const PolicyNote *note = policy_note(policy, "bridge.routes", items->items[i]);

        return note ? strdup(note->where) : str_format("bridge.routes[%zu]", i);
}

/* Refuses a member, or the key of one unless that is NULL. Returns -EINVAL or -ENOMEM. */
static int routes_refuse_member(const RoutesPlan *routes, const char *where, const char *member,
                                const char *key, const char *why) {
        /* The place of an option has no JSON path. */
        const bool json = strchr(where, '$');
        _cleanup_free_ char *path = json ? json_path_key(where, member)
                                         : str_format("%s: %s", where, member);
        _cleanup_free_ char *full = !path || !key ? NULL
                                    : json        ? json_path_key(path, key)
                                                  : str_format("%s: %s", path, key);

        return !path || (key && !full) ? error_oom(routes->reterr)
                                       : error_set(routes->reterr, ERROR_POLICY, 0, "%s: %s",
                                                   full ? full : path, why);
}

static void routes_plan_clear(RoutesPlan *routes) {
        strlist_clear(&routes->names);
}

/* Whether the policy sets the variable itself. */
static bool routes_env_is_set(const Policy *policy, const char *name) {
        return plan_has_env(&policy->env_set, name);
}

/* --- variables and files --- */

static int routes_set_env(RoutesPlan *routes, const char *key, char *value, const char *where) {
        int r = routes_env_is_set(routes->policy, key)
                        ? 0
                        : plan_set_env(&routes->plan->env, key, strlen(key), value);

        (void)where;
        free(value);
        return r < 0 ? error_oom(routes->reterr) : 0;
}

static int routes_write_file(RoutesPlan *routes, const char *key, char *value, const char *where) {
        const char *why;
        int r = plan_add_file(routes->plan, key, value, strlen(value), &why);

        return r == -EINVAL ? routes_refuse_member(routes, where, "files", key, why)
               : r < 0      ? error_oom(routes->reterr)
                            : 0;
}

/* The members whose texts have placeholders. Each function takes ownership of value. */
static const struct {
        const char *member;
        int (*add)(RoutesPlan *routes, const char *key, char *value, const char *where);
} routes_texts[] = {
        { "env", routes_set_env },
        { "files", routes_write_file },
};

static int routes_add_texts(RoutesPlan *routes, const JsonValue *route, const char *where) {
        _cleanup_free_ char *url = str_format("http://127.0.0.1:%d/%s", ROUTES_PORT,
                                              json_member_text(route, "name"));
        _cleanup_free_ char *address = str_format("127.0.0.1:%d", ROUTES_PORT);
        const RouteWords words = { .url = url, .token = routes->token, .address = address };
        int r = url && address ? 0 : error_oom(routes->reterr);

        for (size_t i = 0; i < ELEMENTSOF(routes_texts); i++) {
                const JsonValue *object = json_member(route, routes_texts[i].member);

                for (const JsonValue *item = json_first(object); r == 0 && item;
                     item = json_next(item)) {
                        char *value = route_expand(json_string(item), &words);

                        r = value ? routes_texts[i].add(routes, json_key(item), value, where)
                                  : error_oom(routes->reterr);
                }
        }
        return r;
}

/* --- TLS --- */

/* Variables that make programs trust the CA, which is otherwise only in the usual files of the
 * system. Node, Python's requests and others have certificates of their own. */
static const struct {
        const char *name, *value;
} routes_trust[] = {
        { "SSL_CERT_FILE", PLAN_CA_BUNDLE },
        { "CURL_CA_BUNDLE", PLAN_CA_BUNDLE },
        { "REQUESTS_CA_BUNDLE", PLAN_CA_BUNDLE },
        { "PIP_CERT", PLAN_CA_BUNDLE },
        { "GIT_SSL_CAINFO", PLAN_CA_BUNDLE },
        { "AWS_CA_BUNDLE", PLAN_CA_BUNDLE },
        { "CARGO_HTTP_CAINFO", PLAN_CA_BUNDLE },
        { "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", PLAN_CA_BUNDLE },
        { "NODE_EXTRA_CA_CERTS", PLAN_CA_FILE },
        { "DENO_CERT", PLAN_CA_FILE },
};

static int routes_add_tls_host(RoutesPlan *routes, const char *host, const char *where) {
        LaunchPlan *plan = routes->plan;
        const char *why;
        char *line;
        int r;

        if (strlist_has(&plan->tls_hosts, host)) {
                _cleanup_free_ char *taken = str_format("another route has the host %s", host);

                return taken ? routes_refuse_member(routes, where, "terminate_tls", NULL, taken)
                             : error_oom(routes->reterr);
        }
        line = str_format(ROUTES_TLS_ADDRESS " %s\n", host);
        if (!line || strlist_add(&plan->tls_hosts, host) < 0) {
                free(line);
                return error_oom(routes->reterr);
        }
        r = plan_add_file(plan, "/etc/hosts", line, strlen(line), &why);
        return r == -EINVAL ? routes_refuse_member(routes, where, "terminate_tls", NULL, why)
               : r < 0      ? error_oom(routes->reterr)
                            : 0;
}

/* json: the route in the form that holt-gateway reads. */
static int routes_add_tls(RoutesPlan *routes, const char *json, const char *where) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        int r = json_parse(json, strlen(json), where, &document, routes->reterr);
        const JsonValue *hosts = r < 0 ? NULL : json_member(json_root(document), "terminate_tls");

        for (const JsonValue *item = json_first(hosts); r == 0 && item; item = json_next(item))
                r = routes_add_tls_host(routes, json_string(item), where);
        for (size_t i = 0; r == 0 && json_first(hosts) && i < ELEMENTSOF(routes_trust); i++)
                if (!routes_env_is_set(routes->policy, routes_trust[i].name) &&
                    plan_set_env(&routes->plan->env, routes_trust[i].name,
                                 strlen(routes_trust[i].name), routes_trust[i].value) < 0)
                        r = error_oom(routes->reterr);
        return r;
}

/* --- routes --- */

/* Adds the route to the plan in the form that holt-gateway reads. */
static int routes_add_text(RoutesPlan *routes, const JsonValue *route, const char *where) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        int r = route_write(route, where, &w, routes->reterr);

        if (r < 0)
                return r;
        if (json_write_finish(&w) < 0)
                return error_oom(routes->reterr);
        w.data[w.length - 1] = '\0'; /* the newline */
        r = routes_add_tls(routes, w.data, where);
        if (r == 0 && strlist_take(&routes->plan->routes, TAKE_PTR(w.data)) < 0)
                r = error_oom(routes->reterr);
        return r;
}

static int routes_add(RoutesPlan *routes, const char *text, const char *where) {
        const RouteProvider *provider = text[0] == '{' ? NULL : route_provider(text);
        _cleanup_(json_freep) JsonDocument *document = NULL;
        const JsonValue *route;
        const char *name, *why;
        int r;

        if (text[0] != '{' && !provider) {
                (void)route_refuse_name(text, &why);
                return error_set(routes->reterr, ERROR_POLICY, 0, "%s: \"%s\" %.*s", where, text,
                                 (int)strcspn(why, "\n"), why);
        }
        text = provider ? provider->json : text;
        r = json_parse(text, strlen(text), where, &document, routes->reterr);
        if (r < 0)
                return r;
        route = json_root(document);
        r = routes_add_text(routes, route, where);
        if (r < 0)
                return r;
        name = json_member_string(route, "name");
        if (strlist_has(&routes->names, name)) {
                r = error_set(routes->reterr, ERROR_POLICY, 0, "%s: route \"%s\" is given twice",
                              where, name);
                return error_cure(routes->reterr, r, "Give each route a name of its own.");
        }
        if (strlist_add(&routes->names, name) < 0)
                return error_oom(routes->reterr);
        return routes_add_texts(routes, route, where);
}

static int routes_refuse(const Policy *policy, const StrList *items, Error *reterr) {
        _cleanup_free_ char *where = routes_place(policy, items, 0);
        int r;

        if (!where)
                return error_oom(reterr);
        if (policy->routes.count > ROUTES_MAX) {
                (void)error_set(reterr, ERROR_POLICY, 0, "%s: more than %d routes", where,
                                ROUTES_MAX);
                return -E2BIG;
        }
        if (policy->network != NETWORK_HOST)
                return 0;
        r = error_set(reterr, ERROR_POLICY, 0,
                      "%s: a route needs a network of its own, and network.mode is \"host\"",
                      where);
        return error_cure(reterr, r, "Choose another network.mode, or leave --network host out.");
}

int routes_plan_items(const Policy *policy, const StrList *items, const char *token,
                      LaunchPlan *plan, Error *reterr) {
        _cleanup_(routes_plan_clear) RoutesPlan routes = {
                .policy = policy, .token = token, .plan = plan, .reterr = reterr
        };
        int r;

        if (items->count == 0)
                return 0;
        r = routes_refuse(policy, items, reterr);
        for (size_t i = 0; r == 0 && i < items->count; i++) {
                _cleanup_free_ char *where = routes_place(policy, items, i);

                r = where ? routes_add(&routes, items->items[i], where) : error_oom(reterr);
        }
        return r < 0 ? r : plan_check_lengths(&plan->env, "environment variable", reterr);
}

int routes_plan(const Policy *policy, const char *token, LaunchPlan *plan, Error *reterr) {
        return routes_plan_items(policy, &policy->routes, token, plan, reterr);
}

int routes_check(const Policy *policy, Error *reterr) {
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };

        return routes_plan(policy, "", &plan, reterr);
}
