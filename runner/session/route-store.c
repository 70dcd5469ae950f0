/* SPDX-License-Identifier: Apache-2.0 */
#include "session/route-store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/sys.h"
#include "network/caller-env.h"
#include "network/gateway-protocol.h"
#include "policy/plan-routes.h"
#include "policy/routes/route.h"
#include "session/at-rest.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* --- items --- */

int route_item_make(const char *provider, const JsonValue *object, char **ret, Error *reterr) {
        const char *why = "";
        int r;

        if (!provider == !object)
                return error_set(reterr, ERROR_USAGE, 0,
                                 "a route is either the name of a known one, or an object");
        if (object) {
                r = route_check(object, "route: $", reterr);
                if (r < 0)
                        return r;
                *ret = route_text(object);
                if (*ret && strlen(*ret) > ROUTE_TEXT_MAX) {
                        free(*ret);
                        *ret = NULL;
                        return error_set(reterr, ERROR_USAGE, 0, "the route has more than %d bytes",
                                         ROUTE_TEXT_MAX);
                }
        } else {
                if (!route_provider(provider)) {
                        (void)route_refuse_name(provider, &why);
                        return error_set(reterr, ERROR_USAGE, 0, "\"%.60s\" %.*s", provider,
                                         (int)strcspn(why, "\n"), why);
                }
                *ret = strdup(provider);
        }
        return *ret ? 0 : error_oom(reterr);
}

/* Parses an item. A provider becomes its object. */
static int route_item_parse(const char *item, JsonDocument **ret, Error *reterr) {
        const RouteProvider *provider = item[0] == '{' ? NULL : route_provider(item);
        const char *text = provider ? provider->json : item;

        return json_parse(text, strlen(text), "route", ret, reterr);
}

/* Does the same in the form that holt-gateway reads (route_write()). */
static int route_item_normal(const char *item, JsonDocument **ret, Error *reterr) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        int r = route_item_parse(item, &document, reterr);

        if (r == 0)
                r = route_write(json_root(document), "route: $", &w, reterr);
        if (r == 0 && json_write_finish(&w) < 0)
                r = error_oom(reterr);
        return r < 0 ? r : json_parse(w.data, w.length, "route", ret, reterr);
}

int route_item_variables(const char *item, StrList *ret) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        const JsonValue *env;
        Error ignored;
        int r = route_item_parse(item, &document, &ignored);

        if (r < 0)
                return r;
        env = json_member(json_root(document), "env");
        for (const JsonValue *i = json_first(env); r == 0 && i; i = json_next(i))
                r = strlist_add(ret, json_key(i));
        return r;
}

static ssize_t route_index(const StrList *items, const char *name) {
        char found[ROUTE_NAME_MAX + 1];

        for (size_t i = 0; i < items->count; i++)
                if (route_text_name(items->items[i], found) == 0 && streq(found, name))
                        return (ssize_t)i;
        return -1;
}

/* Takes an item out of the list, without freeing it. */
static char *route_take(StrList *items, size_t at) {
        char *item = items->items[at];

        items->count--;
        memmove(items->items + at, items->items + at + 1,
                (items->count - at) * sizeof(*items->items));
        return item;
}

/* --- storing --- */

/* Stores the policy, with an event in the audit. */
static int route_write_policy(const Settings *settings, Store *store, const char *name,
                              bool removed, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(strlist_clear) StrList details = { 0 };
        _cleanup_free_ char *grant = str_format("route:%s", name);

        json_write_object(&w, NULL);
        json_write_string(&w, "grant", grant);
        if (removed)
                json_write_bool(&w, "removed", true);
        json_write_end(&w);
        if (!grant || json_write_finish(&w) < 0 || strlist_add(&details, w.data) < 0)
                return error_oom(reterr);
        return settings_write_policy(settings, store, "grant", &details, reterr);
}

int route_store_add(Settings *settings, Store *store, const char *item, Error *reterr) {
        StrList *items = &settings->policy.routes;
        const size_t count = items->count;
        char name[ROUTE_NAME_MAX + 1];
        int r;

        if (route_text_name(item, name) < 0)
                return error_oom(reterr);
        if (route_index(items, name) >= 0) {
                (void)error_set(reterr, ERROR_EXISTS, 0, "the session has a route \"%s\" already",
                                name);
                return error_cure(reterr, -EEXIST, "Remove it first: holt route remove NAME %s",
                                  name);
        }
        r = policy_set(&settings->policy, "bridge.routes", item, ORIGIN_CALLER, "route: $", reterr);
        if (r == 0)
                r = routes_check(&settings->policy, reterr);
        if (r == 0)
                r = route_write_policy(settings, store, name, false, reterr);
        while (r < 0 && items->count > count)
                free(route_take(items, items->count - 1));
        return r;
}

int route_store_remove(Settings *settings, Store *store, const char *name, Error *reterr) {
        StrList *items = &settings->policy.routes;
        const ssize_t at = route_index(items, name);
        char quoted[80], *item;
        int r;

        if (at < 0) {
                (void)error_set(reterr, ERROR_MISSING, 0, "the session has no route \"%s\"",
                                str_quote(name, quoted, sizeof(quoted)));
                return error_cure(reterr, -ENOENT, "To list the routes: holt route list NAME");
        }
        item = route_take(items, (size_t)at);
        r = route_write_policy(settings, store, name, true, reterr);
        if (r == 0) {
                free(item);
                return 0;
        }
        /* The list has had room for it. */
        memmove(items->items + at + 1, items->items + at,
                (items->count - (size_t)at) * sizeof(*items->items));
        items->items[at] = item;
        items->count++;
        return r;
}

int route_add_at_rest(const char *session, const char *item, Error *reterr) {
        _cleanup_(at_rest_close) AtRest rest = AT_REST_NONE;
        int r = at_rest_open(session, &rest, reterr);

        return r < 0 ? r : route_store_add(&rest.settings, rest.store, item, reterr);
}

int route_remove_at_rest(const char *session, const char *name, Error *reterr) {
        _cleanup_(at_rest_close) AtRest rest = AT_REST_NONE;
        int r = at_rest_open(session, &rest, reterr);

        return r < 0 ? r : route_store_remove(&rest.settings, rest.store, name, reterr);
}

/* --- live sessions --- */

bool route_is_live(const LaunchPlan *plan, const char *name) {
        return route_index(&plan->routes, name) >= 0;
}

const char *route_waits(const char *text, const char *item) {
        _cleanup_(json_freep) JsonDocument *written = NULL, *document = NULL;
        const JsonValue *route;

        if (json_parse(text, strlen(text), "route", &written, NULL) < 0 ||
            route_item_parse(item, &document, NULL) < 0)
                return "memory is out";
        route = json_root(document);
        if (json_first(json_member(route, "files")))
                return "it writes files inside";
        if (json_first(json_member(route, "terminate_tls")))
                return "it terminates TLS";
        route = json_root(written);
        for (const JsonValue *i = json_first(json_member(route, "inject")); i; i = json_next(i))
                if (json_member(i, "file") || json_member(i, "command"))
                        return "its credential comes from a file or a command";
        return json_first(json_member(route, "pass")) ? "it passes variables of the caller" : NULL;
}

static void route_write_one(const char *item, const LaunchPlan *plan, JsonWriter *w) {
        _cleanup_(json_freep) JsonDocument *written = NULL;
        _cleanup_(strlist_clear) StrList variables = { 0 };
        const JsonValue *route;
        Error ignored;

        if (route_item_normal(item, &written, &ignored) < 0 ||
            route_item_variables(item, &variables) < 0)
                return;
        route = json_root(written);
        json_write_object(w, NULL);
        json_write_string(w, "name", json_member_text(route, "name"));
        json_write_string(w, "upstream", json_member_text(route, "upstream"));
        json_write_array(w, "env");
        for (size_t i = 0; i < variables.count; i++)
                json_write_string(w, NULL, variables.items[i]);
        json_write_end(w);
        json_write_array(w, "terminate_tls");
        for (const JsonValue *host = json_first(json_member(route, "terminate_tls")); host;
             host = json_next(host))
                json_write_string(w, NULL, json_string(host));
        json_write_end(w);
        json_write_bool(w, "live", plan && route_is_live(plan, json_member_text(route, "name")));
        json_write_end(w);
}

void route_store_write(const Policy *policy, const LaunchPlan *plan, JsonWriter *w) {
        json_write_array(w, "routes");
        for (size_t i = 0; i < policy->routes.count; i++)
                route_write_one(policy->routes.items[i], plan, w);
        json_write_end(w);
}

int route_store_write_at_rest(Store *store, JsonWriter *w, Error *reterr) {
        _cleanup_(settings_clear) Settings settings = { 0 };
        int r = settings_read(store, &settings, reterr);

        if (r == 0)
                route_store_write(&settings.policy, NULL, w);
        return r;
}

/* --- credentials --- */

static int route_refuse_unset(const char *route, const char *name, Error *reterr) {
        int r = error_set(reterr, ERROR_USAGE, 0,
                          "the route %s needs the environment variable %s, which is not set", route,
                          name);

        return error_cure(reterr, r,
                          "Set it in the environment of the command that adds the route.");
}

/* Writes NAME=VALUE and a NUL from the caller's environment, without a copy in this process. */
static int route_secret_write(int fd, const char *route, const char *name, size_t *length,
                              Error *reterr) {
        const char *value = caller_env_get(name);
        const size_t size = value ? strlen(name) + strlen(value) + 2 : 0;

        if (size == 0 || !*value)
                return route_refuse_unset(route, name, reterr);
        *length += size;
        if (*length > GATEWAY_SECRETS_MAX)
                return error_set(reterr, ERROR_LIMIT, 0, "the variables of the route are too long");
        return write(fd, name, strlen(name)) < 0 || write(fd, "=", 1) < 0 ||
                               write(fd, value, strlen(value) + 1) < 0
                       ? error_set(reterr, ERROR_SETUP, errno, "cannot write to a memory file")
                       : 0;
}

static int route_secrets_write(int fd, const JsonValue *written, size_t *length, Error *reterr) {
        int r = 0;

        for (const JsonValue *i = json_first(json_member(written, "inject")); r == 0 && i;
             i = json_next(i)) {
                const char *name = json_member_string(i, "env");

                if (name)
                        r = route_secret_write(fd, json_member_text(written, "name"), name, length,
                                               reterr);
        }
        return r;
}

int route_secrets_pack(const char *item, int *ret, Error *reterr) {
        _cleanup_(json_freep) JsonDocument *written = NULL;
        _cleanup_close_ int fd = FD_NONE;
        size_t length = 0;
        int r = route_item_normal(item, &written, reterr);

        *ret = FD_NONE;
        if (r < 0)
                return r;
        fd = sys_memfd_create("holt-route", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
        if (fd < 0)
                fd = sys_memfd_create("holt-route", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot make a memory file");
        r = route_secrets_write(fd, json_root(written), &length, reterr);
        if (r < 0 || length == 0)
                return r;
        if (lseek(fd, 0, SEEK_SET) < 0 ||
            fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot seal a memory file");
        *ret = TAKE_FD(fd);
        return 0;
}
