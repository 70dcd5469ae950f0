/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that act on commands that have started. */
#include <signal.h>

#include "methods/area.h"
#include "methods/past.h"

int method_find_process(const RpcCall *call, Keeper *keeper, Process **ret, Error *error) {
        return past_process(keeper, rpc_string(call, "id"), false, ret, error);
}

static int method_process_write(RpcCall *call, void *data, Error *error) {
        _cleanup_free_ char *bytes = NULL;
        size_t length = 0;
        Process *process;
        int r = method_take_content(call, "data", &bytes, &length, error);

        if (r < 0)
                return r;
        r = method_find_process(call, data, &process, error);
        if (r < 0)
                return r;
        r = process_write(process, bytes, length, error);
        if (r < 0)
                return r;
        rpc_reply_empty(call);
        return 0;
}

static int method_process_close_stdin(RpcCall *call, void *data, Error *error) {
        Process *process;
        int r = method_find_process(call, data, &process, error);

        if (r < 0)
                return r;
        process_close_input(process);
        rpc_reply_empty(call);
        return 0;
}

static int method_process_resize(RpcCall *call, void *data, Error *error) {
        Process *process;
        int r = method_find_process(call, data, &process, error);

        if (r == 0)
                r = process_resize(process, (uint16_t)rpc_uint(call, "rows", 0),
                                   (uint16_t)rpc_uint(call, "columns", 0), error);
        if (r == 0)
                rpc_reply_empty(call);
        return r;
}

static const struct {
        const char *name;
        int number;
} signals[] = {
        { "HUP", SIGHUP },   { "INT", SIGINT },   { "QUIT", SIGQUIT },   { "ABRT", SIGABRT },
        { "KILL", SIGKILL }, { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 },   { "ALRM", SIGALRM },
        { "TERM", SIGTERM }, { "CONT", SIGCONT }, { "STOP", SIGSTOP },   { "TSTP", SIGTSTP },
        { "TTIN", SIGTTIN }, { "TTOU", SIGTTOU }, { "WINCH", SIGWINCH }, { "PIPE", SIGPIPE },
};

const char *method_signal_name(size_t i) {
        return i < ELEMENTSOF(signals) ? signals[i].name : NULL;
}

static int find_signal(const char *text, int *ret, Error *error) {
        const char *name = str_starts(text, "SIG") ? text + 3 : text;
        uint64_t number;
        int r;

        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                if (streq(signals[i].name, name)) {
                        *ret = signals[i].number;
                        return 0;
                }
        if (str_to_uint(text, 64, &number) == 0 && number > 0) {
                *ret = (int)number;
                return 0;
        }
        r = error_set(error, ERROR_USAGE, 0, "unknown signal \"%.20s\"", text);
        return error_cure(error, r, "Write it like TERM, SIGTERM or 15.");
}

static int method_process_signal(RpcCall *call, void *data, Error *error) {
        Process *process;
        int number = 0, r = method_find_process(call, data, &process, error);

        if (r == 0)
                r = find_signal(rpc_string(call, "signal"), &number, error);
        if (r < 0)
                return r;
        if (rpc_bool(call, "all", false))
                process_signal_all(process, number);
        else
                process_signal(process, number);
        rpc_reply_empty(call);
        return 0;
}

static int method_process_resume(RpcCall *call, void *data, Error *error) {
        Process *process;
        int r = method_find_process(call, data, &process, error);

        if (r < 0)
                return r;
        process_resume(process);
        rpc_reply_empty(call);
        return 0;
}

/* A process that has ended is no error, even if it ended before the session's last stop. */
static int method_process_kill(RpcCall *call, void *data, Error *error) {
        Keeper *keeper = data;
        const char *id = rpc_string(call, "id");
        Process *process = NULL;
        int r = process_find(keeper->processes, id, &process, error);

        if (r < 0 && !past_has(keeper, id))
                return r;
        json_write_bool(rpc_result(call), "killed", process && !process_is_over(process));
        if (process)
                process_kill(process);
        rpc_reply(call);
        return 0;
}

/* --- the table --- */

static const RpcParam id_params[] = {
        METHOD_PROCESS_ID,
};

static const RpcParam write_params[] = {
        METHOD_PROCESS_ID,
        { "data", RPC_STRING, false, 0, "text for the stdin of the process" },
        { "base64", RPC_STRING, false, 0, "bytes for stdin, in base64, instead of data" },
};

static const RpcParam resize_params[] = {
        METHOD_PROCESS_ID,
        { "rows", RPC_UINT, true, 65535, "height of the terminal" },
        { "columns", RPC_UINT, true, 65535, "width of the terminal" },
};

static const RpcParam signal_params[] = {
        METHOD_PROCESS_ID,
        { "signal", RPC_STRING, true, 16,
          "name or number of the signal: \"TERM\", \"SIGTERM\" or \"15\"" },
        { "all", RPC_BOOL, false, 0,
          "send the signal to all processes that the command has started; stopped processes "
          "continue" },
};

static const RpcField kill_fields[] = {
        { "killed", RPC_BOOL, RPC_ALWAYS, "false if the process had already ended" },
};
static const RpcShape killed_shape = { .name = "Killed", RPC_FIELDS(kill_fields) };

static const RpcMethod methods[] = {
        {
                .name = "process.write",
                .help = "writes to the stdin of a process",
                RPC_PARAMS(write_params),
                .result = &rpc_nothing,
                .errors = RPC_ERROR(NO_PROCESS) | RPC_ERROR(USAGE),
                .example = { "{\"id\": \"p1\", \"data\": \"yes\\n\"}", "{}" },
                .function = method_process_write,
        },
        {
                .name = "process.close_stdin",
                .help = "ends the stdin of a process",
                RPC_PARAMS(id_params),
                .result = &rpc_nothing,
                .errors = RPC_ERROR(NO_PROCESS),
                .example = { "{\"id\": \"p1\"}", "{}" },
                .function = method_process_close_stdin,
        },
        {
                .name = "process.resize",
                .help = "sets the size of a process's terminal",
                RPC_PARAMS(resize_params),
                .result = &rpc_nothing,
                .errors = RPC_ERROR(NO_PROCESS) | RPC_ERROR(USAGE),
                .example = { "{\"id\": \"p1\", \"rows\": 24, \"columns\": 80}", "{}" },
                .function = method_process_resize,
        },
        {
                .name = "process.signal",
                .help = "sends a signal to a command and its process group",
                RPC_PARAMS(signal_params),
                .result = &rpc_nothing,
                .errors = RPC_ERROR(NO_PROCESS) | RPC_ERROR(USAGE),
                .example = { "{\"id\": \"p1\", \"signal\": \"INT\"}", "{}" },
                .function = method_process_signal,
        },
        {
                .name = "process.resume",
                .help = "moves a stopped command to the foreground of its terminal, and continues "
                        "everything that it has started",
                RPC_PARAMS(id_params),
                .result = &rpc_nothing,
                .errors = RPC_ERROR(NO_PROCESS),
                .example = { "{\"id\": \"p1\"}", "{}" },
                .function = method_process_resume,
        },
        {
                .name = "process.kill",
                .help = "kills a process and everything that it has started",
                RPC_PARAMS(id_params),
                .result = &killed_shape,
                .errors = RPC_ERROR(NO_PROCESS),
                .example = { "{\"id\": \"p1\"}", "{\"killed\": true}" },
                .function = method_process_kill,
        },
};
const MethodArea method_process_act_area = { methods, ELEMENTSOF(methods) };
