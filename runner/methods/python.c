/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of the session's interpreter. */
#include <string.h>

#include "base/paths.h"
#include "inside/interpreter.h"
#include "methods/area.h"

/* The file is in the session's root, so it survives a stop. */
#define STATE_DEFAULT "/home/agent/.local/state/holt/python.pickle"

static int method_python_run(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        CodeRun asked = { .file = rpc_string(call, "file"),
                          .once = rpc_bool(call, "fresh", false) };

        return method_run_code(keeper, keeper->interpreters, call, &asked, error);
}

static int method_python_variables(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;

        return interpreter_ask(keeper->interpreters, call, "variables", NULL, error);
}

static int ask_with_path(const Keeper *keeper, RpcCall *call, const char *what, Error *error) {
        const char *path = rpc_string(call, "path");
        _cleanup_free_ char *absolute = path_join(keeper->plan.cwd, path ? path : STATE_DEFAULT);

        return absolute ? interpreter_ask(keeper->interpreters, call, what, absolute, error)
                        : error_oom(error);
}

static int method_python_save(RpcCall *call, void *data, Error *error) {
        return ask_with_path(data, call, "save", error);
}

static int method_python_load(RpcCall *call, void *data, Error *error) {
        return ask_with_path(data, call, "load", error);
}

static int method_python_interrupt(RpcCall *call, void *data, Error *error) {
        (void)error;
        return method_interrupt_code(((const Keeper *)data)->interpreters, call);
}

static int method_python_restart(RpcCall *call, void *data, Error *error) {
        (void)error;
        return method_restart_code(((const Keeper *)data)->interpreters, call);
}

/* --- the table --- */

static const RpcParam run_params[] = {
        { "code", RPC_STRING, true, 0,
          "the code; if its last statement is an expression, result is the repr of the value" },
        { "file", RPC_STRING, false, 4096, "name of the code in tracebacks, and its __file__" },
        { "cwd", RPC_STRING, false, 4096,
          "directory for this run, relative to the workspace; default: the directory in which the "
          "previous run ended" },
        { "env", RPC_MAP, false, 1024, "environment variables for this run" },
        { "tools", RPC_STRINGS, false, 1024,
          "names of the tools that the code may call, of any client; default: this connection's "
          "tools" },
        { "fresh", RPC_BOOL, false, 0,
          "run the code in a separate interpreter, which ends with the run" },
        METHOD_CODE_PARAMS("code"),
        { "run", RPC_STRING, false, 64,
          "a name for the run, chosen by the client, for python.interrupt and python.restart" },
};

static const RpcParam end_params[] = {
        { "run", RPC_STRING, false, 64,
          "name of a run of this connection, which is dropped if it is still waiting; default: "
          "the current run of the lasting interpreter" },
};

static const RpcParam state_params[] = {
        { "path", RPC_STRING, false, 4096,
          "a file inside; default: one in the home directory of the session" },
};

static const RpcField error_fields[] = {
        { "name", RPC_STRING, RPC_ALWAYS, "class of the exception, such as \"ValueError\"" },
        { "message", RPC_STRING, RPC_ALWAYS, "text of the exception" },
        { "traceback", RPC_STRING, RPC_ALWAYS, "the lines that Python prints" },
};
static const RpcShape exception_shape = { .name = "PythonError",
                                          .help = "the exception that ended the code",
                                          RPC_FIELDS(error_fields) };

static const RpcField run_fields[] = {
        METHOD_STREAM_FIELDS,
        { "state_kept", RPC_BOOL, RPC_ALWAYS,
          "false if the interpreter has ended, so that the next run starts without variables" },
        { "lost", RPC_STRING, RPC_OR_NULL,
          "how the interpreter ended between the previous run and this one; null if it did not end",
          .values = method_causes },
        { "new_interpreter", RPC_BOOL, RPC_ALWAYS,
          "true if the run started without the variables of earlier runs, because their "
          "interpreter had ended" },
        { "result", RPC_STRING, RPC_OR_NULL, "repr of the last expression" },
        { "displays", RPC_MAPS, RPC_ALWAYS,
          "figures and other values that the code has shown: text or base64 for each MIME type" },
        { "error", RPC_SHAPE, RPC_OR_NULL,
          "the exception that ended the code; null if there was none", .shape = &exception_shape },
};
static const RpcShape run_shape = { .name = "PythonResult",
                                    .help = "how a run of code ended",
                                    RPC_FIELDS(run_fields),
                                    .base = &method_outcome };

static const RpcField variable_fields[] = {
        { "name", RPC_STRING, RPC_ALWAYS, "name of the variable" },
        { "type", RPC_STRING, RPC_ALWAYS, "its class" },
        { "size", RPC_STRING, RPC_OR_NULL, "its length or shape, as text" },
        { "repr", RPC_STRING, RPC_ALWAYS, "its repr, cut if long" },
};
static const RpcShape variable_shape = { .name = "Variable",
                                         .help = "a variable of the interpreter",
                                         RPC_FIELDS(variable_fields) };

static const RpcField variables_fields[] = {
        { "variables", RPC_SHAPES, RPC_ALWAYS, "the variables that code has set",
          .shape = &variable_shape },
};
static const RpcShape variables_shape = { .name = "Variables", RPC_FIELDS(variables_fields) };

static const RpcField save_fields[] = {
        { "saved", RPC_STRINGS, RPC_ALWAYS, "names of variables" },
        { "left_out", RPC_MAP, RPC_ALWAYS, "names of variables, and why each cannot be saved" },
        { "path", RPC_STRING, RPC_ALWAYS, "the file, absolute" },
};
static const RpcShape saved_shape = { .name = "PythonSaved", RPC_FIELDS(save_fields) };

static const RpcField load_fields[] = {
        { "loaded", RPC_STRINGS, RPC_ALWAYS, "names of variables" },
        { "failed", RPC_MAP, RPC_ALWAYS, "names of variables, and why each cannot be loaded" },
        { "path", RPC_STRING, RPC_ALWAYS, "the file, absolute" },
};
static const RpcShape loaded_shape = { .name = "PythonLoaded", RPC_FIELDS(load_fields) };

static const RpcField interrupt_fields[] = {
        { "interrupted", RPC_BOOL, RPC_ALWAYS, "false if nothing ran" },
};
static const RpcShape interrupted_shape = { .name = "Interrupted", RPC_FIELDS(interrupt_fields) };

static const RpcField restart_fields[] = {
        { "killed", RPC_BOOL, RPC_ALWAYS, "false if no interpreter ran" },
};
static const RpcShape restarted_shape = { .name = "Restarted", RPC_FIELDS(restart_fields) };

enum {
        PYTHON_ERRORS = RPC_ERROR(MISSING) | RPC_ERROR(DATA) | RPC_ERROR(NOT_FOUND) |
                        RPC_ERROR(NOT_EXECUTABLE),
};

static const RpcMethod methods[] = {
        {
                .name = "python.run",
                .help = "runs code in the session's lasting interpreter",
                RPC_PARAMS(run_params),
                .result = &run_shape,
                .errors = RPC_ERROR(USAGE) | RPC_ERROR(MISSING) | RPC_ERROR(NOT_FOUND) |
                          RPC_ERROR(NOT_EXECUTABLE),
                .sends = { &method_process_output, &method_process_exited },
                .example = { "{\"code\": \"x = 2\\nx + 1\"}",
                             "{" METHOD_OUTCOME_EXAMPLE
                             ", \"stdout\": \"\", \"stderr\": \"\", \"state_kept\": true,"
                             " \"lost\": null, \"new_interpreter\": false, \"result\": \"3\", "
                             "\"displays\": [], \"error\": null}" },
                .function = method_python_run,
        },
        {
                .name = "python.variables",
                .help = "lists the variables of the interpreter",
                .result = &variables_shape,
                .errors = PYTHON_ERRORS,
                .example = { "{}", "{\"variables\": [{\"name\": \"x\", \"type\": \"int\","
                                   " \"size\": null, \"repr\": \"2\"}]}" },
                .function = method_python_variables,
        },
        {
                .name = "python.save",
                .help = "writes the variables of the interpreter to a file",
                RPC_PARAMS(state_params),
                .result = &saved_shape,
                .errors = PYTHON_ERRORS,
                .example = { "{\"path\": \"state.pickle\"}",
                             "{\"saved\": [\"x\"], \"left_out\": {},"
                             " \"path\": \"/workspace/state.pickle\"}" },
                .function = method_python_save,
        },
        {
                .name = "python.load",
                .help = "reads variables from a file that python.save wrote",
                RPC_PARAMS(state_params),
                .result = &loaded_shape,
                .errors = PYTHON_ERRORS,
                .example = { "{\"path\": \"state.pickle\"}",
                             "{\"loaded\": [\"x\"], \"failed\": {},"
                             " \"path\": \"/workspace/state.pickle\"}" },
                .function = method_python_load,
        },
        {
                .name = "python.interrupt",
                .help = "interrupts the running code, as Ctrl-C does",
                RPC_PARAMS(end_params),
                .result = &interrupted_shape,
                .example = { "{}", "{\"interrupted\": true}" },
                .function = method_python_interrupt,
        },
        {
                .name = "python.restart",
                .help = "kills the interpreter; the next run starts a new one",
                RPC_PARAMS(end_params),
                .result = &restarted_shape,
                .example = { "{}", "{\"killed\": true}" },
                .function = method_python_restart,
        },
};
const MethodArea method_python_area = { methods, ELEMENTSOF(methods) };
