/* SPDX-License-Identifier: Apache-2.0 */
/* Methods by which clients offer tools to the code inside. */
#include "inside/tools.h"
#include "keeper/methods.h"

int method_tools_register(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        const ToolSpec spec = { .name = rpc_string(call, "name"),
                                .description = rpc_string(call, "description"),
                                .input = rpc_object(call, "input_schema"),
                                .output = rpc_object(call, "output_schema"),
                                .timeout_ms = rpc_uint(call, "timeout_ms", TOOL_TIMEOUT) };
        int r = tools_register(keeper->tools, rpc_call_connection(call), &spec, error);

        if (r < 0)
                return r;
        (void)rpc_result(call);
        rpc_reply(call);
        return 0;
}

int method_tools_unregister(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        int r = tools_unregister(keeper->tools, rpc_call_connection(call), rpc_string(call, "name"),
                                 error);

        if (r < 0)
                return r;
        (void)rpc_result(call);
        rpc_reply(call);
        return 0;
}

int method_tools_list(RpcCall *call, void *data, Error *error) {
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
