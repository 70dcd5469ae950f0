/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that start commands. */
#include <errno.h>
#include <string.h>

#include "base/paths.h"
#include "inside/bridge.h"
#include "inside/tools.h"
#include "methods/area.h"
#include "process/report.h"
#include "sandbox/stdio-files.h"
#include "streams/stdio.h"

/* --- the command --- */

/* Replaces an earlier variable of the same name. */
int method_set_variable(StrList *env, const char *item) {
        const size_t length = strcspn(item, "=") + 1;
        char *copy = strdup(item);

        for (size_t i = 0; copy && i < env->count; i++)
                if (strncmp(env->items[i], item, length) == 0) {
                        free(env->items[i]);
                        env->items[i] = copy;
                        return 0;
                }
        return strlist_take(env, copy);
}

/* Fills in the session's variables first, then the call's. */
static int fill_env(const Keeper *keeper, const RpcCall *call, StrList *ret, Error *error) {
        _cleanup_(strlist_clear) StrList more = { 0 };
        int r = rpc_strings(call, "env", &more, error);

        for (size_t i = 0; r == 0 && i < keeper->plan.env.count; i++)
                r = strlist_add(ret, keeper->plan.env.items[i]);
        for (size_t i = 0; r == 0 && i < more.count; i++)
                r = method_set_variable(ret, more.items[i]);
        if (r < 0)
                return r == -ENOMEM ? error_oom(error) : r;
        return plan_check_lengths(ret, "environment variable", error);
}

static int fill_argv(const RpcCall *call, StrList *ret, Error *error) {
        const char *shell = rpc_string(call, "shell");
        int r;

        if (rpc_has(call, "argv") == (shell != NULL)) {
                r = error_set(error, ERROR_USAGE, 0, "exec takes either argv or shell");
                return error_cure(
                        error, r,
                        "Pass argv: [\"make\", \"-j2\"], or shell: \"make -j2 && ./a.out\".");
        }
        r = rpc_strings(call, "argv", ret, error);
        if (r == 0 && shell)
                r = strlist_add(ret, "bash") < 0 || strlist_add(ret, "-c") < 0 ||
                                    strlist_add(ret, shell) < 0
                            ? error_oom(error)
                            : 0;
        if (r == 0 && (ret->count == 0 || ret->items[0][0] == '\0'))
                r = error_set(error, ERROR_USAGE, 0,
                              "argv is empty: pass the command and its arguments");
        return r == 0 ? plan_check_lengths(ret, "argument", error) : r;
}

/* A call may lower the policy's limit, but not raise it; 0 means no limit. */
static uint64_t exec_method_within(uint64_t asked, uint64_t limit) {
        return limit && (!asked || asked > limit) ? limit : asked;
}

void method_take_limits(const Keeper *keeper, const RpcCall *call, uint64_t *ret_timeout,
                        size_t *ret_kept, bool *ret_keep_tail) {
        const uint64_t asked = rpc_uint(call, "output_max", CAPTURE_KEPT);
        const char *keep = rpc_string(call, "keep");

        *ret_timeout = exec_method_within(rpc_uint(call, "timeout_ms", 0) * 1000,
                                          keeper->plan.timeout);
        *ret_kept = (size_t)(asked ? exec_method_within(asked, keeper->plan.output) : 0);
        *ret_keep_tail = keep && streq(keep, "tail");
}

typedef struct Prepared {
        ProcessSpec spec;
        char *cwd;
        uint8_t mode[60];
} Prepared;

static void prepared_clear(Prepared *prepared) {
        prepared->spec.grant = grant_end(prepared->spec.grant);
        strlist_clear(&prepared->spec.argv);
        strlist_clear(&prepared->spec.env);
        for (int fd = 0; fd <= 2; fd++)
                fd_close(prepared->spec.fds[fd]);
        free(prepared->cwd);
}

#define PREPARED_NONE                                                                              \
        {                                                                                          \
                .spec = {.fds = { FD_NONE, FD_NONE, FD_NONE } }                                    \
        }

static int exec_method_prepare(const Keeper *keeper, const RpcCall *call, Prepared *prepared,
                               Error *error) {
        const char *cwd = rpc_string(call, "cwd");
        int r = fill_argv(call, &prepared->spec.argv, error);

        if (r < 0)
                return r;
        r = fill_env(keeper, call, &prepared->spec.env, error);
        if (r < 0)
                return r;
        method_take_limits(keeper, call, &prepared->spec.timeout, &prepared->spec.kept,
                           &prepared->spec.keep_tail);
        prepared->cwd = path_join(keeper->plan.cwd, cwd ? cwd : ".");
        prepared->spec.cwd = prepared->cwd;
        prepared->spec.asked = cwd;
        if (!prepared->cwd)
                return error_oom(error);
        r = method_take_grant(keeper, call, &prepared->spec.grant, error);
        if (r < 0)
                return r;
        r = bridge_fill_env(grant_token(prepared->spec.grant), &prepared->spec.env);
        return r < 0 ? error_oom(error) : 0;
}

static int exec_method_start(Keeper *keeper, RpcCall *call, Prepared *prepared, Process **ret,
                             Error *error) {
        int r = process_start(keeper->processes, &prepared->spec, ret, error);

        if (r < 0)
                return r;
        grant_set_exec(TAKE_PTR(prepared->spec.grant), (*ret)->id);
        keeper_used(keeper);
        process_mark_denials(*ret, &keeper->denials, keeper->sandbox.network.denials,
                             keeper->sandbox.gateway.denials);
        keeper_note(keeper, *ret, rpc_call_method(call)->name, rpc_params_text(call));
        return 0;
}

static int method_exec(RpcCall *call, void *data, Error *error) {
        _cleanup_(prepared_clear) Prepared prepared = PREPARED_NONE;
        Keeper *keeper = data;
        const char *input = rpc_string(call, "stdin");
        Process *process;
        int r = exec_method_prepare(keeper, call, &prepared, error);

        if (r < 0)
                return r;
        prepared.spec.input = input ? INPUT_PIPE : INPUT_NONE;
        r = exec_method_start(keeper, call, &prepared, &process, error);
        if (r == 0 && input) {
                r = process_write(process, input, strlen(input), error);
                process_close_input(process);
        }
        return r < 0 ? r
                     : keeper_wait(keeper, call, process, method_wait_for_end(call, true), error);
}

/* --- spawning, with the caller's fds or a terminal --- */

static int exec_method_take_fds(const Keeper *keeper, RpcCall *call, ProcessSpec *spec,
                                Error *error) {
        const uint64_t given = rpc_uint(call, "fds", 0);
        size_t next = 0;
        int r;

        for (int fd = 0; fd <= 2; fd++) {
                bool detour;

                if (!(given & (1U << fd)))
                        continue;
                spec->fds[fd] = rpc_take_fd(call, next++);
                if (spec->fds[fd] < 0 || given & spec->terminal)
                        return error_set(
                                error, ERROR_USAGE, 0,
                                "fds does not match the descriptors that came with the request");
                if (!stdio_is_harmless(spec->fds[fd]))
                        return stdio_refuse(fd, error);
                r = stdio_shield(&keeper->plan, fd, &spec->fds[fd], &detour, error);
                if (r < 0)
                        return r;
                spec->detours |= detour ? 1U << fd : 0;
        }
        return 0;
}

static int hex_digit(char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int take_mode(const RpcCall *call, Prepared *prepared, Error *error) {
        const char *hex = rpc_string(call, "mode");

        for (size_t i = 0; hex && i < sizeof(prepared->mode); i++) {
                int high = hex[2 * i] ? hex_digit(hex[2 * i]) : -1;
                int low = high >= 0 ? hex_digit(hex[2 * i + 1]) : -1;

                if (low < 0)
                        return error_set(error, ERROR_USAGE, 0,
                                         "mode must have %zu bytes in hexadecimal",
                                         sizeof(prepared->mode));
                prepared->mode[i] = (uint8_t)(high << 4 | low);
        }
        prepared->spec.mode = hex ? prepared->mode : NULL;
        return 0;
}

static int method_process_spawn(RpcCall *call, void *data, Error *error) {
        _cleanup_(prepared_clear) Prepared prepared = PREPARED_NONE;
        ProcessSpec *spec = &prepared.spec;
        Keeper *keeper = data;
        Process *process;
        int r = exec_method_prepare(keeper, call, &prepared, error);

        if (r < 0)
                return r;
        spec->input = rpc_bool(call, "input", false) ? INPUT_PIPE : INPUT_NONE;
        spec->owner = rpc_bool(call, "owned", false) ? rpc_call_connection(call) : NULL;
        spec->terminal = (unsigned)rpc_uint(call, "terminal", 0);
        spec->background = rpc_bool(call, "background", false);
        spec->give_master = rpc_bool(call, "master", false);
        spec->rows = (uint16_t)rpc_uint(call, "rows", 0);
        spec->columns = (uint16_t)rpc_uint(call, "columns", 0);
        r = exec_method_take_fds(keeper, call, spec, error);
        if (r == 0)
                r = take_mode(call, &prepared, error);
        if (r < 0)
                return r;
        r = exec_method_start(keeper, call, &prepared, &process, error);
        if (r < 0)
                return r;
        process->output.awaits = rpc_bool(call, "watch", false);
        keeper_note_begun(keeper, process); /* Init is still starting it. */
        return keeper_wait(keeper, call, process, WAIT_START, error);
}

/* --- the table --- */

const char *const method_keeps[] = { "head", "tail", NULL };

/* Parameters of both methods: the command, its surroundings and its limits. */
#define COMMAND_PARAMS                                                                             \
        { "argv", RPC_STRINGS, false, 65536, "the command and its arguments" },                    \
                { "shell", RPC_STRING, false, 0, "command line for bash -c, instead of argv" },    \
                { "cwd", RPC_STRING, false, 4096,                                                  \
                  "directory to start in, relative to the workspace" },                            \
                { "env", RPC_MAP, false, 1024,                                                     \
                  "environment variables, in addition to the session's own" },                     \
                { "timeout_ms", RPC_UINT, false, 86400000000,                                      \
                  "limit of wall time; the policy's limit is the default and the maximum" },       \
                METHOD_OUTPUT_PARAMS, {                                                            \
                "tools", RPC_STRINGS, false, 1024,                                                 \
                        "names of the tools that the code may call, of any client; default: "      \
                        "this connection's tools"                                                  \
        }

static const RpcParam exec_params[] = {
        COMMAND_PARAMS,
        { "stdin", RPC_STRING, false, 0, "text that the command reads; default: nothing" },
        { "base64", RPC_BOOL, false, 0, "return stdout and stderr in base64" },
};

static const RpcParam spawn_params[] = {
        COMMAND_PARAMS,
        { "input", RPC_BOOL, false, 0,
          "stdin is a pipe that process.write fills; default: stdin is empty" },
        { "owned", RPC_BOOL, false, 0,
          "kill the command, and everything that it has started, when this connection ends" },
        { "watch", RPC_BOOL, false, 0,
          "after the reply, send all output in base64, as fast as this client reads, and then "
          "process.exited" },
        { "terminal", RPC_UINT, false, 7, "a bit for each of fds 0 to 2 that is a terminal" },
        { "background", RPC_BOOL, false, 0,
          "start in the background of the terminal; process.stopped says when the command wants "
          "to read, and process.resume moves it to the foreground" },
        { "rows", RPC_UINT, false, 65535, "height of the terminal" },
        { "columns", RPC_UINT, false, 65535, "width of the terminal" },
        { "mode", RPC_STRING, false, 200,
          "settings of the terminal: a struct termios in hexadecimal, as for the ioctl TCSETS" },
        { "master", RPC_BOOL, false, 0,
          "return the master side of the terminal as an fd (SCM_RIGHTS)" },
        { "fds", RPC_UINT, false, 7,
          "a bit for each of fds 0 to 2 that comes with the request (SCM_RIGHTS); for some "
          "files, the command gets a copy or a pipe instead (see SECURITY.md)" },
};

static const RpcField spawn_fields[] = {
        { "id", RPC_STRING, RPC_ALWAYS, "id of the process, such as \"p1\"" },
        { "pid", RPC_UINT, RPC_ALWAYS, "the PID inside" },
        { "timeout_us", RPC_UINT, RPC_OR_NULL, "the time limit that applied, in microseconds" },
        { "ended", RPC_SHAPE, RPC_SOMETIMES, "how the command ended, if it has already ended",
          .shape = &method_ended },
};
static const RpcShape spawned_shape = { .name = "Spawned", RPC_FIELDS(spawn_fields) };

enum {
        START_ERRORS = RPC_ERROR(USAGE) | RPC_ERROR(MISSING) | RPC_ERROR(NOT_FOUND) |
                       RPC_ERROR(NOT_EXECUTABLE),
};

static const RpcMethod methods[] = {
        {
                .name = "exec",
                .help = "runs a command, and waits until it has ended",
                RPC_PARAMS(exec_params),
                .result = &method_result,
                .errors = START_ERRORS,
                .example = { "{\"argv\": [\"id\", \"-u\"]}",
                             METHOD_ENDED_EXAMPLE(", \"stdout\": \"1000\\n\", \"stderr\": \"\"") },
                .function = method_exec,
        },
        {
                .name = "process.spawn",
                .help = "starts a command, and does not wait until it has ended",
                RPC_PARAMS(spawn_params),
                .result = &spawned_shape,
                .errors = START_ERRORS,
                .sends = { &method_process_output, &method_process_stopped,
                           &method_process_exited },
                .example = { "{\"shell\": \"make -j2\", \"timeout_ms\": 60000}",
                             "{\"id\": \"p1\", \"pid\": 7, \"timeout_us\": 60000000}" },
                .function = method_process_spawn,
        },
};
const MethodArea method_exec_area = { methods, ELEMENTSOF(methods) };
