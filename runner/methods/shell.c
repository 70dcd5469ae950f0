/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of the session's shell. */
#include "inside/interpreter.h"
#include "methods/area.h"

static int method_shell_run(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        CodeRun asked = { 0 };

        return method_run_code(keeper, keeper->shells, call, &asked, error);
}

static int method_shell_interrupt(RpcCall *call, void *data, Error *error) {
        (void)error;
        return method_interrupt_code(((const Keeper *)data)->shells, call);
}

static int method_shell_restart(RpcCall *call, void *data, Error *error) {
        (void)error;
        return method_restart_code(((const Keeper *)data)->shells, call);
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
        METHOD_CODE_PARAMS("commands"),
        { "run", RPC_STRING, false, 64,
          "a name for the call, chosen by the client, for shell.interrupt and shell.restart" },
};

static const RpcParam end_params[] = {
        { "run", RPC_STRING, false, 64,
          "name of a call of this connection, which is dropped if it is still waiting; default: "
          "the current call" },
};

static const RpcField run_fields[] = {
        METHOD_STREAM_FIELDS,
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
