/* SPDX-License-Identifier: Apache-2.0 */
/* Methods by which clients offer tools to code inside. */
#include "inside/tools.h"
#include "methods/area.h"

static int method_tools_register(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        const ToolSpec spec = { .name = rpc_string(call, "name"),
                                .description = rpc_string(call, "description"),
                                .input = rpc_object(call, "input_schema"),
                                .output = rpc_object(call, "output_schema"),
                                .timeout_ms = rpc_uint(call, "timeout_ms", TOOL_TIMEOUT),
                                .checked_by_client = rpc_bool(call, "checked_by_client", false) };
        int r = tools_register(keeper->tools, rpc_call_connection(call), &spec, error);

        if (r < 0)
                return r;
        rpc_reply_empty(call);
        return 0;
}

static int method_tools_unregister(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        int r = tools_unregister(keeper->tools, rpc_call_connection(call), rpc_string(call, "name"),
                                 error);

        if (r < 0)
                return r;
        rpc_reply_empty(call);
        return 0;
}

static int method_tools_list(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;

        (void)error;
        tools_write(keeper->tools, NULL, "tools", rpc_result(call));
        rpc_reply(call);
        return 0;
}

int method_take_grant(const Keeper *keeper, const RpcCall *call, Grant **ret, Error *error) {
        _cleanup_(strlist_clear) StrList names = { 0 };
        int r = rpc_strings(call, "tools", &names, error);

        return r < 0 ? r
                     : tools_grant(keeper->tools, rpc_has(call, "tools") ? &names : NULL,
                                   rpc_call_connection(call), ret, error);
}

/* --- the table --- */

static const RpcParam register_params[] = {
        { "name", RPC_STRING, true, TOOL_NAME_MAX,
          "name of the tool, made of A-Z, a-z, 0-9, \"_\", \"-\" and \".\"" },
        { "description", RPC_STRING, true, TOOL_DESCRIPTION_MAX,
          "what the tool does; a model reads this text" },
        { "input_schema", RPC_OBJECT, true, 0,
          "JSON Schema of the tool's payload, which is an object" },
        { "output_schema", RPC_OBJECT, false, 0, "JSON Schema of the value that the tool returns" },
        { "timeout_ms", RPC_UINT, false, TOOL_TIMEOUT_MAX,
          "time limit of a call, including the wait for its turn; default 30000" },
        { "checked_by_client", RPC_BOOL, false, 0,
          "the client itself checks payloads and values; the schemas only describe them" },
};

static const RpcParam unregister_params[] = {
        { "name", RPC_STRING, true, TOOL_NAME_MAX, "a tool of this connection" },
};

static const RpcField tool_fields[] = {
        { "name", RPC_STRING, RPC_ALWAYS, "name of the tool" },
        { "description", RPC_STRING, RPC_ALWAYS, "what the tool does, as its client describes it" },
        { "input_schema", RPC_OBJECT, RPC_ALWAYS, "JSON Schema of its payload" },
        { "output_schema", RPC_OBJECT, RPC_OR_NULL,
          "JSON Schema of the value that the tool returns" },
        { "timeout_ms", RPC_UINT, RPC_ALWAYS, "limit of a call" },
};
static const RpcShape tool_shape = { .name = "Tool",
                                     .help = "a tool that code inside may call",
                                     RPC_FIELDS(tool_fields) };

static const RpcField list_fields[] = {
        { "tools", RPC_SHAPES, RPC_ALWAYS, "all tools that clients have registered",
          .shape = &tool_shape },
};
static const RpcShape list_shape = { .name = "ToolList", RPC_FIELDS(list_fields) };

static const RpcField call_fields[] = {
        METHOD_NOTE_FIELDS,
        { "name", RPC_STRING, RPC_ALWAYS, "the tool" },
        { "payload", RPC_OBJECT, RPC_ALWAYS, "the payload, as input_schema describes it" },
        { "call", RPC_STRING, RPC_ALWAYS, "id of the call, for tool.cancel, such as \"c1\"" },
        { "exec", RPC_STRING, RPC_ALWAYS, "id of the process that calls the tool, such as \"p1\"" },
        { "timeout_ms", RPC_UINT, RPC_ALWAYS, "limit of the call" },
};
static const RpcShape tool_call_shape = { .name = "ToolCall", RPC_FIELDS(call_fields) };

static const RpcField value_fields[] = {
        { "value", RPC_ANY, RPC_ALWAYS, "what the tool returns, as output_schema describes it" },
};
static const RpcShape tool_value_shape = { .name = "ToolValue", RPC_FIELDS(value_fields) };

static const RpcOutgoing call_request = {
        .name = "tool.call",
        .help = "code inside calls a tool of this connection",
        .params = &tool_call_shape,
        .result = &tool_value_shape,
        .example = { "{\"session\": \"work\", \"name\": \"price\", \"payload\": {\"of\": \"tea\"},"
                     " \"call\": \"c1\", \"exec\": \"p1\", \"timeout_ms\": 30000}",
                     "{\"value\": 3.5}" },
};

static const RpcField cancel_fields[] = {
        METHOD_NOTE_FIELDS,
        { "call", RPC_STRING, RPC_ALWAYS, "the id from tool.call, such as \"c1\"" },
};
static const RpcShape tool_cancel_shape = { .name = "ToolCancel", RPC_FIELDS(cancel_fields) };

static const RpcOutgoing cancel_note = {
        .name = "tool.cancel",
        .help = "a call of a tool was cancelled: nobody waits for its result any more",
        .params = &tool_cancel_shape,
        .example = { "{\"session\": \"work\", \"call\": \"c1\"}" },
};

static const RpcMethod methods[] = {
        {
                .name = "tools.register",
                .help = "lets code inside call a tool of this client, until this connection ends",
                RPC_PARAMS(register_params),
                .result = &rpc_nothing,
                .errors = RPC_ERROR(USAGE) | RPC_ERROR(EXISTS),
                .sends = { &call_request, &cancel_note },
                .example = { "{\"name\": \"price\", \"description\": \"the price of a thing\","
                             " \"input_schema\": {\"type\": \"object\"}}",
                             "{}" },
                .function = method_tools_register,
        },
        {
                .name = "tools.unregister",
                .help = "removes a tool of this connection",
                RPC_PARAMS(unregister_params),
                .result = &rpc_nothing,
                .errors = RPC_ERROR(MISSING),
                .example = { "{\"name\": \"price\"}", "{}" },
                .function = method_tools_unregister,
        },
        {
                .name = "tools.list",
                .help = "lists the tools of all clients",
                .result = &list_shape,
                .at_rest = true,
                .example = { "{}", "{\"tools\": [{\"name\": \"price\","
                                   " \"description\": \"the price of a thing\","
                                   " \"input_schema\": {\"type\": \"object\"},"
                                   " \"output_schema\": null, \"timeout_ms\": 30000}]}" },
                .function = method_tools_list,
        },
};
const MethodArea method_tools_area = { methods, ELEMENTSOF(methods) };
