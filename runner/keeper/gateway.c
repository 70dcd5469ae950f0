/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of a live session: requests that holt-gateway reports, for the audit, and routes that
 * a client adds or removes.
 *
 * Theory of operation. The keeper first stores a change in the session's policy. Then it tells
 * holt-gateway, which replies to each command in order, and the keeper replies to the client. If
 * holt-gateway cannot take a route, or hangs, the route applies from the next start on. The
 * credential comes in a sealed memory file. The keeper passes its descriptor on, and never reads
 * it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "base/list.h"
#include "base/time.h"
#include "base/wait.h"
#include "keeper/keeper.h"
#include "network/gateway-protocol.h"
#include "policy/plan-parts.h"
#include "policy/plan-routes.h"
#include "policy/routes/route.h"
#include "session/route-store.h"
#include "store/unwritten.h"

enum {
        ROUTE_CHANGES_MAX = 16,               /* changes without a reply of holt-gateway */
        ROUTE_CHANGE_TIME = HOLT_WAIT(10000), /* milliseconds until the client gets a reply */
};

/* A command to which holt-gateway has not replied yet. */
struct RouteChange {
        struct RouteChange *next;
        RpcCall *call;     /* NULL if the client has gone, or has a reply */
        uint64_t deadline; /* usec of time_now_usec() */
        char *text; /* the new route in the form that holt-gateway reads, or NULL: a removal */
        char name[ROUTE_NAME_MAX + 1];
};

typedef struct RouteChange RouteChange;

static RouteChange *route_change_free(RouteChange *change) {
        if (change)
                free(change->text);
        free(change);
        return NULL;
}

static void route_change_on_end(RpcCall *call, void *data) {
        RouteChange *change = data;

        (void)call;
        change->call = NULL;
}

/* --- the plan --- */

static void route_env_remove(StrList *env, const char *item) {
        for (size_t i = 0; i < env->count; i++) {
                if (!streq(env->items[i], item))
                        continue;
                free(env->items[i]);
                env->count--;
                memmove(env->items + i, env->items + i + 1, (env->count - i) * sizeof(*env->items));
                return;
        }
}

/* The variables of the routes that are live now. */
static int route_live_plan(const Keeper *keeper, LaunchPlan *ret) {
        const StrList *all = &keeper->settings.policy.routes;
        _cleanup_(strlist_clear) StrList live = { 0 };
        char name[ROUTE_NAME_MAX + 1];
        Error ignored;

        for (size_t i = 0; i < all->count; i++)
                if (route_text_name(all->items[i], name) == 0 &&
                    route_is_live(&keeper->plan, name) && strlist_add(&live, all->items[i]) < 0)
                        return -ENOMEM;
        return routes_plan_items(&keeper->settings.policy, &live, keeper->plan.route_token, ret,
                                 &ignored);
}

/* Gives later commands the variables of the routes that are live now. old: the part of the plan
 * before the change. */
static void routes_renew_env(Keeper *keeper, const LaunchPlan *old) {
        _cleanup_(plan_clear) LaunchPlan now = { 0 };
        StrList *env = &keeper->plan.env;

        if (route_live_plan(keeper, &now) < 0)
                return;
        for (size_t i = 0; i < old->env.count; i++)
                route_env_remove(env, old->env.items[i]);
        strlist_clear(&keeper->route_env);
        keeper->route_env = now.env;
        now.env = (StrList){ 0 };
        for (size_t i = 0; i < keeper->route_env.count; i++) {
                const char *item = keeper->route_env.items[i];
                const size_t length = strcspn(item, "=");

                (void)plan_set_env(env, item, length, item + length + 1);
        }
}

static void route_plan_remove(LaunchPlan *plan, const char *name) {
        char found[ROUTE_NAME_MAX + 1];

        for (size_t i = 0; i < plan->routes.count; i++)
                if (route_text_name(plan->routes.items[i], found) == 0 && streq(found, name)) {
                        route_env_remove(&plan->routes, plan->routes.items[i]);
                        return;
                }
}

/* --- commands --- */

static int route_send(const Keeper *keeper, const RouteChange *change, int secrets_fd) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        if (change->text) {
                const JsonWriter route = { .data = change->text,
                                           .length = strlen(change->text),
                                           .filled = true };

                json_write_value(&w, "add", &route);
        } else {
                json_write_string(&w, "remove", change->name);
        }
        json_write_end(&w);
        return json_write_finish(&w) < 0
                       ? -ENOMEM
                       : gateway_command(&keeper->sandbox.gateway, w.data, w.length, secrets_fd);
}

static void route_answer(RpcCall *call, bool live, const char *reason) {
        JsonWriter *w = rpc_result(call);

        json_write_bool(w, "live", live);
        json_write_string(w, "reason", reason);
        rpc_reply(call);
}

/* Sets the timer to the deadline of the oldest change whose client waits. */
static void routes_set_timer(const Keeper *keeper) {
        const RouteChange *change = keeper->route_changes;

        while (change && !change->call)
                change = change->next;
        loop_timer_set(keeper->route_timer, change ? change->deadline : 0);
}

/* Returns 0 if holt-gateway got the command; then the call waits for its reply. */
static int route_begin(Keeper *keeper, const char *name, char *text, int secrets_fd,
                       RpcCall *call) {
        RouteChange *change = calloc(1, sizeof(*change));
        int r;

        if (!change) {
                free(text);
                return -ENOMEM;
        }
        change->text = text;
        (void)snprintf(change->name, sizeof(change->name), "%s", name);
        r = route_send(keeper, change, secrets_fd);
        if (r < 0) {
                (void)route_change_free(change);
                return r;
        }
        change->call = call;
        change->deadline = time_now_usec() + ROUTE_CHANGE_TIME * 1000ULL;
        rpc_call_on_end(call, route_change_on_end, change);
        list_append(&keeper->route_changes, change);
        routes_set_timer(keeper);
        return 0;
}

static int route_check_count(const Keeper *keeper, Error *reterr) {
        size_t count = 0;

        for (const RouteChange *change = keeper->route_changes; change; change = change->next)
                count++;
        return count < ROUTE_CHANGES_MAX
                       ? 0
                       : error_set(reterr, ERROR_LIMIT, 0,
                                   "too many changes of routes are being carried out");
}

/* A pipe or a file could block holt-gateway, or change while it is read. */
static int route_check_secrets(int fd, Error *reterr) {
        const int needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
        const int seals = fd < 0 ? needed : fcntl(fd, F_GET_SEALS);
        struct stat st;

        if (fd < 0)
                return 0;
        if (seals >= 0 && (seals & needed) == needed && fstat(fd, &st) == 0 &&
            st.st_size <= GATEWAY_SECRETS_MAX)
                return 0;
        return error_set(reterr, ERROR_USAGE, 0,
                         "the descriptor is not a sealed memory file of at most %d bytes",
                         GATEWAY_SECRETS_MAX);
}

static const char *route_gateway_missing(const Keeper *keeper) {
        return keeper->sandbox.gateway.lost             ? "holt-gateway has ended"
               : !keeper->plan.route_token              ? "the session was started without routes"
               : keeper->sandbox.gateway.control_fd < 0 ? "holt-gateway has ended"
                                                        : NULL;
}

/* Returns the form of the new route, the last of the policy, that holt-gateway reads. */
static char *route_last_text(const Keeper *keeper, const char *item) {
        char one[] = "";
        char *items[] = { one };
        const StrList list = { .items = items, .count = 1 };
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };
        Error ignored;

        items[0] = (char *)(uintptr_t)item;
        if (routes_plan_items(&keeper->settings.policy, &list, "", &plan, &ignored) < 0)
                return NULL;
        return strdup(plan.routes.items[0]);
}

int keeper_route_add(Keeper *keeper, const char *item, int secrets_fd, RpcCall *call,
                     Error *reterr) {
        const char *waits = route_gateway_missing(keeper);
        char name[ROUTE_NAME_MAX + 1], *text;
        int r = route_check_count(keeper, reterr);

        if (r == 0)
                r = route_check_secrets(secrets_fd, reterr);
        if (r == 0 && route_text_name(item, name) < 0)
                r = error_oom(reterr);
        if (r == 0)
                r = route_store_add(&keeper->settings, keeper->store, item, reterr);
        if (r < 0)
                return r;
        text = route_last_text(keeper, item);
        if (!text)
                waits = "memory is out";
        if (!waits)
                waits = route_waits(text, item);
        if (waits)
                free(text);
        else if (route_begin(keeper, name, text, secrets_fd, call) < 0)
                waits = "holt-gateway cannot be reached";
        if (waits)
                route_answer(call, false, waits);
        return 0;
}

int keeper_route_remove(Keeper *keeper, const char *name, RpcCall *call, Error *reterr) {
        _cleanup_(plan_clear) LaunchPlan old = { 0 };
        const bool live = route_is_live(&keeper->plan, name);
        int r = route_check_count(keeper, reterr);

        if (r == 0 && route_live_plan(keeper, &old) < 0)
                r = error_oom(reterr);
        if (r == 0)
                r = route_store_remove(&keeper->settings, keeper->store, name, reterr);
        if (r < 0)
                return r;
        if (live) {
                route_plan_remove(&keeper->plan, name);
                routes_renew_env(keeper, &old);
        }
        if (!live || route_begin(keeper, name, NULL, FD_NONE, call) < 0)
                route_answer(call, true, NULL);
        return 0;
}

/* --- replies --- */

static void route_change_settle(Keeper *keeper, RouteChange *change, const char *reason) {
        _cleanup_(plan_clear) LaunchPlan old = { 0 };

        if (!reason && change->text && route_live_plan(keeper, &old) == 0) {
                if (strlist_take(&keeper->plan.routes, TAKE_PTR(change->text)) == 0)
                        routes_renew_env(keeper, &old);
        }
        if (change->call) {
                rpc_call_on_end(change->call, NULL, NULL);
                route_answer(change->call, !reason, reason);
        }
}

/* holt-gateway hangs. It may still carry out the change later, so that stays in the list. */
void keeper_on_route_late(void *data) {
        Keeper *keeper = data;
        const uint64_t now = time_now_usec();

        for (RouteChange *change = keeper->route_changes; change; change = change->next) {
                RpcCall *call = change->call;

                if (!call || change->deadline > now)
                        continue;
                rpc_call_on_end(call, NULL, NULL);
                change->call = NULL;
                route_answer(call, false, "holt-gateway does not answer");
        }
        routes_set_timer(keeper);
}

void keeper_on_route_changed(Keeper *keeper, const char *reason) {
        RouteChange *change = keeper->route_changes;

        if (!change)
                return;
        (void)list_remove(&keeper->route_changes, change);
        route_change_settle(keeper, change, reason);
        (void)route_change_free(change);
}

void keeper_fail_routes(Keeper *keeper) {
        while (keeper->route_changes)
                keeper_on_route_changed(keeper, "holt-gateway has ended");
}

void keeper_routes_free(Keeper *keeper) {
        list_each_safe(change, keeper->route_changes) {
                if (change->call)
                        rpc_call_on_end(change->call, NULL, NULL);
                (void)route_change_free(change);
        }
        keeper->route_changes = NULL;
        strlist_clear(&keeper->route_env);
}

/* --- events --- */

static void gateway_audit(const Keeper *keeper, JsonWriter *w, const char *kind) {
        json_write_end(w);
        if (json_write_finish(w) == 0)
                unwritten_audit(keeper->unwritten, kind, w->data);
}

static void audit_request(const Keeper *keeper, const GatewayEvent *event) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_string(&w, "route", event->route);
        json_write_string(&w, "method", event->method);
        json_write_string(&w, "path", event->path);
        json_write_uint(&w, "status", event->status);
        json_write_uint(&w, "sent", event->sent);
        json_write_uint(&w, "received", event->received);
        json_write_uint(&w, "ms", event->usec / 1000);
        json_write_string(&w, "error", event->reason[0] ? event->reason : NULL);
        json_write_string(&w, "stderr", event->told[0] ? event->told : NULL);
        gateway_audit(keeper, &w, "route");
}

/* Audits the first refusal of its kind. */
static void audit_refused_request(const Keeper *keeper, const GatewayDenial *first) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        gateway_denial_write(&w, first, 1);
        gateway_audit(keeper, &w, "denial");
}

/* Programs inside can cause very many refusals, so only the first of a kind gets a row. */
static void keeper_on_request(void *data, const GatewayEvent *event, const GatewayDenial *first) {
        if (event->type == GATEWAY_CHANGED)
                keeper_on_route_changed(data, event->reason[0] ? event->reason : NULL);
        else if (event->type != GATEWAY_REFUSED)
                audit_request(data, event);
        else if (first)
                audit_refused_request(data, first);
}

void keeper_read_gateway(Keeper *keeper) {
        if (keeper->sandbox.gateway.control_fd < 0)
                return;
        gateway_read(&keeper->sandbox.gateway, keeper_on_request, keeper);
        if (keeper->sandbox.gateway.control_fd < 0) {
                keeper->gateway_watch = loop_unwatch(keeper->gateway_watch);
                keeper_fail_routes(keeper);
        }
}

static void keeper_on_gateway(void *data, uint32_t events) {
        (void)events;
        keeper_read_gateway(data);
}

int keeper_watch_gateway(Keeper *keeper, Error *reterr) {
        const int fd = keeper->sandbox.gateway.control_fd;

        return fd < 0 ? 0
                      : loop_watch(keeper->loop, fd, EPOLLIN, keeper_on_gateway, keeper,
                                   &keeper->gateway_watch, reterr);
}

void keeper_end_gateway(Keeper *keeper) {
        keeper->gateway_watch = loop_unwatch(keeper->gateway_watch);
        gateway_stop(&keeper->sandbox.gateway, keeper_on_request, keeper);
}
