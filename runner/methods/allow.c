/* SPDX-License-Identifier: Apache-2.0 */
/* The method that adds rules to the network of a live session. For a session at rest, `holt serve`
 * stores them (serve/proxy-rest.c). */
#include "methods/area.h"
#include "session/allow.h"

static int method_session_allow(RpcCall *call, void *data, Error *error) {
        _cleanup_(strlist_clear) StrList grants = { 0 }, rules = { 0 };
        int r = rpc_strings(call, "grants", &grants, error);

        if (r == 0)
                r = allow_read(&grants, &rules, error);
        return r < 0 ? r : keeper_grant(data, &rules, rpc_bool(call, "once", false), call, error);
}

static const RpcParam allow_params[] = {
        { "grants", RPC_STRINGS, true, 256,
          "each is \"net:\" and a rule or a set, such as \"net:example.org:443\"" },
        { "once", RPC_BOOL, false, 0,
          "each grant allows only one connection, and is not stored; the session must be live" },
};

static const RpcField allowed_fields[] = {
        { "live", RPC_BOOL, RPC_ALWAYS,
          "true: the rules apply now. false: they apply from the session's next start on" },
};
static const RpcShape allowed_shape = { .name = "SessionAllowed", RPC_FIELDS(allowed_fields) };

static const RpcMethod methods[] = {
        {
                .name = "session.allow",
                .help = "adds rules to the network of the session, which keeps them until it is "
                        "removed",
                RPC_PARAMS(allow_params),
                .result = &allowed_shape,
                .errors = RPC_ERROR(USAGE) | RPC_ERROR(BUSY) | RPC_ERROR(DATA),
                .at_rest = true,
                .example = { "{\"grants\": [\"net:example.org:443\"]}", "{\"live\": true}" },
                .function = method_session_allow,
        },
};
const MethodArea method_allow_area = { methods, ELEMENTSOF(methods) };
