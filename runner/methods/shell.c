/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of the session's shell. */
#include "base/paths.h"
#include "inside/interpreter.h"
#include "methods/area.h"

static int method_shell_run(RpcCall *call, void *data, Error *error) {
        _cleanup_(strlist_clear) StrList env = { 0 };
        _cleanup_free_ char *cwd = NULL;
        Keeper *keeper = data;
        CodeRun asked = { .code = rpc_string(call, "code"),
                          .name = rpc_string(call, "run"),
                          .env = &env,
                          .watch = rpc_bool(call, "watch", false),
                          .base64 = rpc_bool(call, "base64", false) };
        int r = method_take_env(keeper, call, &env, error);

        method_take_limits(keeper, call, &asked.timeout, &asked.kept, &asked.keep_tail);
        if (r == 0 && rpc_has(call, "cwd")) {
                cwd = path_join(keeper->plan.cwd, rpc_string(call, "cwd"));
                r = cwd ? 0 : error_oom(error);
        }
        asked.cwd = cwd;
        if (r == 0)
                r = method_take_grant(keeper, call, &asked.grant, error);
        return r < 0 ? r : interpreter_run(keeper->shells, call, &asked, error);
}

static int method_shell_interrupt(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;

        (void)error;
        json_write_bool(rpc_result(call), "interrupted",
                        interpreter_interrupt(keeper->shells, rpc_call_connection(call),
                                              rpc_string(call, "run")));
        rpc_reply(call);
        return 0;
}

static int method_shell_restart(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;

        (void)error;
        json_write_bool(rpc_result(call), "killed",
                        interpreter_kill(keeper->shells, rpc_call_connection(call),
                                         rpc_string(call, "run")));
        rpc_reply(call);
        return 0;
}

/* --- the table --- */

static const RpcParam run_params[] = {
        { "code", RPC_STRING, true, 0, "the commands, as bash's eval takes them" },
        { "cwd", RPC_STRING, false, 4096,
          "directory to change to first, relative to the workspace; default: the directory in "
          "which the previous call ended" },
        { "env", RPC_MAP, false, 1024,
          "environment variables that are exported first, and that later calls also have" },
        { "tools", RPC_STRINGS, false, 1024,
          "names of the tools that the commands may call, of any client; default: this "
          "connection's tools" },
        { "timeout_ms", RPC_UINT, false, 86400000000,
          "limit of wall time from the start of the commands; the policy's limit is the default "
          "and the maximum" },
        { "output_max", RPC_UINT, false, CAPTURE_KEPT_MAX,
          "number of bytes that are kept of each stream; default: 1 MiB, or the policy's "
          "limits.output" },
        { "keep", RPC_STRING, false, 8,
          "whether the first or the last bytes are kept if there are more",
          .values = method_keeps },
        { "watch", RPC_BOOL, false, 0, "send output as it comes (process.output)" },
        { "base64", RPC_BOOL, false, 0, "return the output in base64" },
        { "run", RPC_STRING, false, 64,
          "a name for the call, chosen by the client, for shell.interrupt and shell.restart" },
};

static const RpcParam end_params[] = {
        { "run", RPC_STRING, false, 64,
          "name of a call of this connection, which is dropped if it is still waiting; default: "
          "the current call" },
};

static const RpcField run_fields[] = {
        { "stdout", RPC_STRING, RPC_ALWAYS, "the part of stdout that was kept: text, or base64" },
        { "stderr", RPC_STRING, RPC_ALWAYS, "the part of stderr that was kept: text, or base64" },
        { "state_kept", RPC_BOOL, RPC_ALWAYS,
          "false if the shell has ended, so that the next call starts a new one" },
        { "lost", RPC_STRING, RPC_OR_NULL,
          "how the shell ended between the previous call and this one; null if it did not end",
          .values = method_causes },
        { "new_shell", RPC_BOOL, RPC_ALWAYS,
          "true if the call started without the directory, variables and functions of earlier "
          "calls, because their shell had ended" },
};
static const RpcShape run_shape = { .name = "ShellResult",
                                    .help = "how a call of the shell ended",
                                    RPC_FIELDS(run_fields),
                                    .base = &method_outcome };

static const RpcField interrupt_fields[] = {
        { "interrupted", RPC_BOOL, RPC_ALWAYS, "false if nothing ran" },
};
static const RpcShape interrupted_shape = { .name = "ShellInterrupted",
                                            RPC_FIELDS(interrupt_fields) };

static const RpcField restart_fields[] = {
        { "killed", RPC_BOOL, RPC_ALWAYS, "false if no shell ran" },
};
static const RpcShape restarted_shape = { .name = "ShellRestarted", RPC_FIELDS(restart_fields) };

static const RpcMethod methods[] = {
        {
                .name = "shell.run",
                .help = "runs commands in the session's lasting bash",
                RPC_PARAMS(run_params),
                .result = &run_shape,
                .errors = RPC_ERROR(USAGE) | RPC_ERROR(MISSING) | RPC_ERROR(NOT_FOUND) |
                          RPC_ERROR(NOT_EXECUTABLE),
                .sends = { &method_process_output, &method_process_exited },
                .example = { "{\"code\": \"cd src && export DEBUG=1\"}",
                             "{" METHOD_OUTCOME_EXAMPLE
                             ", \"stdout\": \"\", \"stderr\": \"\", \"state_kept\": true,"
                             " \"lost\": null, \"new_shell\": false}" },
                .function = method_shell_run,
        },
        {
                .name = "shell.interrupt",
                .help = "interrupts the running call, as Ctrl-C does",
                RPC_PARAMS(end_params),
                .result = &interrupted_shape,
                .example = { "{}", "{\"interrupted\": true}" },
                .function = method_shell_interrupt,
        },
        {
                .name = "shell.restart",
                .help = "kills the shell with everything that it started; the next call starts a "
                        "new one",
                RPC_PARAMS(end_params),
                .result = &restarted_shape,
                .example = { "{}", "{\"killed\": true}" },
                .function = method_shell_restart,
        },
};
const MethodArea method_shell_area = { methods, ELEMENTSOF(methods) };
