/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that change the routes of a session. For a session at rest, `holt serve` stores the
 * change (serve/proxy-rest.c). */
#include "methods/area.h"
#include "session/route-store.h"

static int method_route_add(RpcCall *call, void *data, Error *error) {
        _cleanup_free_ char *item = NULL;
        _cleanup_close_ int secrets_fd = rpc_take_fd(call, 0);
        int r = route_item_make(rpc_string(call, "known"), rpc_object(call, "route"), &item, error);

        return r < 0 ? r : keeper_route_add(data, item, secrets_fd, call, error);
}

static int method_route_list(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;

        (void)error;
        route_store_write(&keeper->settings.policy, &keeper->plan, rpc_result(call));
        rpc_reply(call);
        return 0;
}

static int method_route_remove(RpcCall *call, void *data, Error *error) {
        return keeper_route_remove(data, rpc_string(call, "name"), call, error);
}

/* --- the table --- */

static const RpcParam add_params[] = {
        { "known", RPC_STRING, false, 32, "the name of a known route, such as \"openai\"" },
        { "route", RPC_OBJECT, false, 0,
          "a route as in \"bridge.routes\" of a policy, instead of known" },
};

static const RpcParam remove_params[] = {
        { "name", RPC_STRING, true, 32, "the name of the route" },
};

static const RpcField changed_fields[] = {
        { "live", RPC_BOOL, RPC_ALWAYS,
          "true: the change applies now. false: it applies from the session's next start on" },
        { "reason", RPC_STRING, RPC_OR_NULL, "why a live session has not changed yet" },
};
static const RpcShape changed_shape = { .name = "RouteChanged", RPC_FIELDS(changed_fields) };

static const RpcField route_fields[] = {
        { "name", RPC_STRING, RPC_ALWAYS, "its name" },
        { "upstream", RPC_STRING, RPC_ALWAYS, "URL of the service" },
        { "env", RPC_STRINGS, RPC_ALWAYS, "names of the variables that commands get" },
        { "terminate_tls", RPC_STRINGS, RPC_ALWAYS, "hosts for which holt-gateway terminates TLS" },
        { "live", RPC_BOOL, RPC_ALWAYS, "whether commands can use it now" },
};
const RpcShape method_route = {
        .name = "Route",
        .help = "a service that commands reach with a credential of the host",
        RPC_FIELDS(route_fields)
};

static const RpcField list_fields[] = {
        { "routes", RPC_SHAPES, RPC_ALWAYS, "the routes, the oldest first",
          .shape = &method_route },
};
static const RpcShape list_shape = { .name = "StoredRoutes", RPC_FIELDS(list_fields) };

static const RpcMethod methods[] = {
        {
                .name = "route.add",
                .help = "adds a route to the session, which keeps it until it is removed",
                RPC_PARAMS(add_params),
                .result = &changed_shape,
                .errors = RPC_ERROR(USAGE) | RPC_ERROR(POLICY) | RPC_ERROR(EXISTS) |
                          RPC_ERROR(BUSY) | RPC_ERROR(DATA),
                .at_rest = true,
                .example = { "{\"known\": \"openai\"}", "{\"live\": true, \"reason\": null}" },
                .function = method_route_add,
        },
        {
                .name = "route.list",
                .help = "lists the routes of the session",
                .result = &list_shape,
                .errors = RPC_ERROR(DATA),
                .at_rest = true,
                .example = { "{}", "{\"routes\": [{\"name\": \"acme\", \"upstream\": "
                                   "\"https://api.acme.example\", \"env\": [\"ACME_URL\"], "
                                   "\"terminate_tls\": [], \"live\": true}]}" },
                .function = method_route_list,
        },
        {
                .name = "route.remove",
                .help = "removes a route of the session, and ends its open requests",
                RPC_PARAMS(remove_params),
                .result = &changed_shape,
                .errors = RPC_ERROR(USAGE) | RPC_ERROR(MISSING) | RPC_ERROR(BUSY) | RPC_ERROR(DATA),
                .at_rest = true,
                .example = { "{\"name\": \"acme\"}", "{\"live\": true, \"reason\": null}" },
                .function = method_route_remove,
        },
};
const MethodArea method_routes_area = { methods, ELEMENTSOF(methods) };
