/* SPDX-License-Identifier: Apache-2.0 */
/* The method by which a client answers questions about hosts that no rule allows. */
#include "methods/area.h"

static int method_network_attend(RpcCall *call, void *data, Error *error) {
        int r = keeper_attend(data, rpc_call_connection(call), error);

        if (r < 0)
                return r;
        rpc_reply_empty(call);
        return 0;
}

static const RpcField ask_fields[] = {
        METHOD_NOTE_FIELDS,
        { "name", RPC_STRING, RPC_ALWAYS, "the host, in its ASCII form" },
        { "port", RPC_UINT, RPC_ALWAYS, "the port" },
        { "timeout_ms", RPC_UINT, RPC_ALWAYS,
          "time to answer; after it, the connection is refused" },
};
static const RpcShape ask_shape = { .name = "NetworkQuestion", RPC_FIELDS(ask_fields) };

static const char *const ask_answers[] = { "once", "session", "no", NULL };
static const RpcField answer_fields[] = {
        { "allow", RPC_STRING, RPC_ALWAYS,
          "once: one connection; session: a rule that the session keeps; no: refused, also later",
          .values = ask_answers },
};
static const RpcShape answer_shape = { .name = "NetworkAnswer", RPC_FIELDS(answer_fields) };

static const RpcOutgoing ask_request = {
        .name = "network.ask",
        .help = "a program connects to a host that no rule allows, and waits",
        .params = &ask_shape,
        .result = &answer_shape,
        .example = { "{\"session\": \"work\", \"name\": \"example.org\", \"port\": 443,"
                     " \"timeout_ms\": 60000}",
                     "{\"allow\": \"once\"}" },
};

static const RpcMethod methods[] = {
        {
                .name = "network.attend",
                .help = "sends questions about hosts that no rule allows to this connection, "
                        "until it ends or the session stops",
                .result = &rpc_nothing,
                .errors = RPC_ERROR(USAGE),
                .sends = { &ask_request },
                .example = { "{}", "{}" },
                .function = method_network_attend,
        },
};
const MethodArea method_attend_area = { methods, ELEMENTSOF(methods) };
