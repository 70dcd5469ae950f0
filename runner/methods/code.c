/* SPDX-License-Identifier: Apache-2.0 */
/* The methods that the interpreter and the shell share. */
#include <errno.h>

#include "base/paths.h"
#include "methods/area.h"

/* A running interpreter has the variables of its start, so those of newer routes come first. */
static int code_take_env(const Keeper *keeper, const RpcCall *call, StrList *ret, Error *error) {
        _cleanup_(strlist_clear) StrList own = { 0 };
        int r = rpc_strings(call, "env", &own, error);

        for (size_t i = 0; r == 0 && i < keeper->route_env.count; i++)
                r = strlist_add(ret, keeper->route_env.items[i]);
        for (size_t i = 0; r == 0 && i < own.count; i++)
                r = method_set_variable(ret, own.items[i]);
        return r == -ENOMEM ? error_oom(error) : r;
}

int method_run_code(const Keeper *keeper, Interpreters *all, RpcCall *call, CodeRun *asked,
                    Error *error) {
        _cleanup_(strlist_clear) StrList env = { 0 };
        _cleanup_free_ char *cwd = NULL;
        int r = code_take_env(keeper, call, &env, error);

        asked->code = rpc_string(call, "code");
        asked->name = rpc_string(call, "run");
        asked->env = &env;
        asked->watch = rpc_bool(call, "watch", false);
        asked->base64 = rpc_bool(call, "base64", false);
        method_take_limits(keeper, call, &asked->timeout, &asked->kept, &asked->keep_tail);
        if (r == 0 && rpc_has(call, "cwd")) {
                cwd = path_join(keeper->plan.cwd, rpc_string(call, "cwd"));
                r = cwd ? 0 : error_oom(error);
        }
        asked->cwd = cwd;
        if (r == 0)
                r = method_take_grant(keeper, call, &asked->grant, error);
        return r < 0 ? r : interpreter_run(all, call, asked, error);
}

int method_interrupt_code(Interpreters *all, RpcCall *call) {
        json_write_bool(
                rpc_result(call), "interrupted",
                interpreter_interrupt(all, rpc_call_connection(call), rpc_string(call, "run")));
        rpc_reply(call);
        return 0;
}

int method_restart_code(Interpreters *all, RpcCall *call) {
        json_write_bool(rpc_result(call), "killed",
                        interpreter_kill(all, rpc_call_connection(call), rpc_string(call, "run")));
        rpc_reply(call);
        return 0;
}
