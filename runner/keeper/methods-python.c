/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of the session's interpreter. */
#include <string.h>

#include "base/paths.h"
#include "inside/interpreter.h"
#include "inside/tools.h"
#include "keeper/methods.h"

/* Lasts with the session's root, so that a stop does not take it. */
#define STATE_DEFAULT "/home/agent/.local/state/holt/python.pickle"

int method_python_run(RpcCall *call, void *data, Error *error) {
        _cleanup_(strlist_clear) StrList env = { 0 };
        _cleanup_free_ char *cwd = NULL;
        Keeper *keeper = data;
        PythonRun run = { .code = rpc_string(call, "code"),
                          .file = rpc_string(call, "file"),
                          .name = rpc_string(call, "run"),
                          .env = &env,
                          .once = rpc_bool(call, "fresh", false),
                          .watch = rpc_bool(call, "watch", false),
                          .base64 = rpc_bool(call, "base64", false) };
        int r = method_take_limits(keeper, call, &run.timeout, &run.kept, &run.keep_tail, error);

        if (r == 0)
                r = rpc_strings(call, "env", &env, error);
        if (r == 0 && rpc_has(call, "cwd")) {
                cwd = path_join(keeper->plan.cwd, rpc_string(call, "cwd"));
                r = cwd ? 0 : error_oom(error);
        }
        run.cwd = cwd;
        if (r == 0)
                r = method_take_grant(keeper, call, &run.grant, error);
        return r < 0 ? r : interpreter_run(keeper->interpreters, call, &run, error);
}

int method_python_variables(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;

        return interpreter_ask(keeper->interpreters, call, "variables", NULL, error);
}

static int ask_with_path(const Keeper *keeper, RpcCall *call, const char *what, Error *error) {
        const char *path = rpc_string(call, "path");
        _cleanup_free_ char *absolute = path_join(keeper->plan.cwd, path ? path : STATE_DEFAULT);

        return absolute ? interpreter_ask(keeper->interpreters, call, what, absolute, error)
                        : error_oom(error);
}

int method_python_save(RpcCall *call, void *data, Error *error) {
        return ask_with_path(data, call, "save", error);
}

int method_python_load(RpcCall *call, void *data, Error *error) {
        return ask_with_path(data, call, "load", error);
}

int method_python_interrupt(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;

        (void)error;
        json_write_bool(rpc_result(call), "interrupted",
                        interpreter_interrupt(keeper->interpreters, rpc_call_connection(call),
                                              rpc_string(call, "run")));
        rpc_reply(call);
        return 0;
}

int method_python_restart(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;

        (void)error;
        json_write_bool(rpc_result(call), "killed",
                        interpreter_kill(keeper->interpreters, rpc_call_connection(call),
                                         rpc_string(call, "run")));
        rpc_reply(call);
        return 0;
}
