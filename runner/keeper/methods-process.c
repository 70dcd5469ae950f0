/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/base64.h"
#include "base/paths.h"
#include "inside/bridge.h"
#include "inside/tools.h"
#include "keeper/methods.h"
#include "process/report.h"
#include "sandbox/result.h"
#include "sandbox/stdio-files.h"
#include "store/unwritten.h"
#include "streams/stdio.h"

/* --- what to start --- */

/* In place of an earlier one of the same name. */
static int set_variable(StrList *env, const char *item) {
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

/* The session's own variables, then the call's. */
static int fill_env(const Keeper *keeper, const RpcCall *call, StrList *ret, Error *error) {
        _cleanup_(strlist_clear) StrList more = { 0 };
        int r = rpc_strings(call, "env", &more, error);

        for (size_t i = 0; r == 0 && i < keeper->plan.env.count; i++)
                r = strlist_add(ret, keeper->plan.env.items[i]);
        for (size_t i = 0; r == 0 && i < more.count; i++)
                r = set_variable(ret, more.items[i]);
        return r == -ENOMEM ? error_oom(error) : r;
}

static int fill_argv(const RpcCall *call, StrList *ret, Error *error) {
        const char *shell = rpc_string(call, "shell");
        int r;

        if (rpc_has(call, "argv") == (shell != NULL)) {
                r = error_set(error, ERROR_USAGE, 0, "exec takes either argv or shell");
                return error_cure(error, r,
                                  "argv: [\"make\", \"-j2\"], or shell: \"make -j2 && ./a.out\"");
        }
        r = rpc_strings(call, "argv", ret, error);
        if (r == 0 && shell)
                r = strlist_add(ret, "bash") < 0 || strlist_add(ret, "-c") < 0 ||
                                    strlist_add(ret, shell) < 0
                            ? error_oom(error)
                            : 0;
        if (r == 0 && (ret->count == 0 || ret->items[0][0] == '\0'))
                r = error_set(error, ERROR_USAGE, 0, "argv has no command");
        return r;
}

/* A call may narrow what the policy gives, and not widen it; 0 is none. */
static uint64_t within(uint64_t asked, uint64_t limit) {
        return limit && (!asked || asked > limit) ? limit : asked;
}

int method_take_limits(const Keeper *keeper, const RpcCall *call, uint64_t *ret_timeout,
                       size_t *ret_kept, bool *ret_keep_tail, Error *error) {
        const uint64_t asked = rpc_uint(call, "output_max", CAPTURE_KEPT);
        const char *keep = rpc_string(call, "keep");

        *ret_timeout = within(rpc_uint(call, "timeout_ms", 0) * 1000, keeper->plan.timeout);
        *ret_kept = (size_t)(asked ? within(asked, keeper->plan.output) : 0);
        *ret_keep_tail = keep && streq(keep, "tail");
        if (!keep || *ret_keep_tail || streq(keep, "head"))
                return 0;
        return error_set(error, ERROR_USAGE, 0, "keep is \"head\" or \"tail\"");
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

static int prepare(const Keeper *keeper, const RpcCall *call, Prepared *prepared, Error *error) {
        const char *cwd = rpc_string(call, "cwd");
        int r = fill_argv(call, &prepared->spec.argv, error);

        if (r == 0)
                r = fill_env(keeper, call, &prepared->spec.env, error);
        if (r == 0)
                r = plan_check_lengths(&prepared->spec.argv, "argument", error);
        if (r == 0)
                r = plan_check_lengths(&prepared->spec.env, "environment variable", error);
        if (r == 0)
                r = method_take_limits(keeper, call, &prepared->spec.timeout, &prepared->spec.kept,
                                       &prepared->spec.keep_tail, error);
        if (r < 0)
                return r;
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

static WaitFor wait_for_end(const RpcCall *call, bool output) {
        if (!output)
                return WAIT_END;
        return rpc_bool(call, "base64", false) ? WAIT_END_BASE64 : WAIT_END_TEXT;
}

static int start(Keeper *keeper, RpcCall *call, Prepared *prepared, Process **ret, Error *error) {
        int r = process_start(keeper->processes, &prepared->spec, ret, error);

        if (r < 0)
                return r;
        grant_set_exec(TAKE_PTR(prepared->spec.grant), (*ret)->id);
        keeper_used(keeper);
        (*ret)->denied_before = keeper->denials;
        keeper_note(keeper, *ret, rpc_call_method(call)->name, rpc_params_text(call));
        return 0;
}

int method_exec(RpcCall *call, void *data, Error *error) {
        _cleanup_(prepared_clear) Prepared prepared = PREPARED_NONE;
        Keeper *keeper = data;
        const char *input = rpc_string(call, "stdin");
        Process *process;
        int r = prepare(keeper, call, &prepared, error);

        if (r < 0)
                return r;
        prepared.spec.input = input ? INPUT_PIPE : INPUT_NONE;
        r = start(keeper, call, &prepared, &process, error);
        if (r == 0 && input) {
                r = process_write(process, input, strlen(input), error);
                process_close_input(process);
        }
        return r < 0 ? r : keeper_wait(keeper, call, process, wait_for_end(call, true), error);
}

/* --- spawning, with the caller's fds or a terminal --- */

static int take_fds(const Keeper *keeper, RpcCall *call, ProcessSpec *spec, Error *error) {
        const uint64_t given = rpc_uint(call, "fds", 0);
        const int landlock = keeper->launch.layers.landlock_abi;
        size_t next = 0;
        int r;

        for (int fd = 0; fd <= 2; fd++) {
                if (!(given & (1U << fd)))
                        continue;
                spec->fds[fd] = rpc_take_fd(call, next++);
                if (spec->fds[fd] < 0 || given & spec->terminal)
                        return error_set(error, ERROR_USAGE, 0,
                                         "fds does not say what came with the request");
                if (!stdio_is_harmless(spec->fds[fd]))
                        return stdio_refuse(fd, error);
                r = stdio_shield(&keeper->plan, NULL, landlock, fd, &spec->fds[fd], error);
                if (r < 0)
                        return r;
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
                        return error_set(error, ERROR_USAGE, 0, "mode is %zu bytes in hex",
                                         sizeof(prepared->mode));
                prepared->mode[i] = (uint8_t)(high << 4 | low);
        }
        prepared->spec.mode = hex ? prepared->mode : NULL;
        return 0;
}

int method_process_spawn(RpcCall *call, void *data, Error *error) {
        _cleanup_(prepared_clear) Prepared prepared = PREPARED_NONE;
        ProcessSpec *spec = &prepared.spec;
        Keeper *keeper = data;
        Process *process;
        int r = prepare(keeper, call, &prepared, error);

        if (r < 0)
                return r;
        spec->input = rpc_bool(call, "input", false) ? INPUT_PIPE : INPUT_NONE;
        spec->owner = rpc_bool(call, "owned", false) ? rpc_call_connection(call) : NULL;
        spec->terminal = (unsigned)rpc_uint(call, "terminal", 0);
        spec->background = rpc_bool(call, "background", false);
        spec->give_master = rpc_bool(call, "master", false);
        spec->rows = (uint16_t)rpc_uint(call, "rows", 0);
        spec->columns = (uint16_t)rpc_uint(call, "columns", 0);
        r = take_fds(keeper, call, spec, error);
        if (r == 0)
                r = take_mode(call, &prepared, error);
        if (r < 0)
                return r;
        r = start(keeper, call, &prepared, &process, error);
        if (r < 0)
                return r;
        keeper_note_begun(keeper, process); /* while init starts it */
        return keeper_wait(keeper, call, process, WAIT_START, error);
}

/* --- what has become of it --- */

/* What was refused in the session while the process ran. */
void method_write_denials(const Keeper *keeper, const Process *process, JsonWriter *w) {
        const Denials *before = &process->denied_before;

        json_write_array(w, "denials");
        for (unsigned i = 0; i < keeper->denials.count; i++) {
                const Denial *denial = &keeper->denials.items[i];
                uint64_t count = denial->count - (i < before->count ? before->items[i].count : 0);
                const char *why_not;

                if (count == 0)
                        continue;
                why_not = result_why_not(&keeper->settings.policy, &keeper->launch.layers, denial);
                json_write_object(w, NULL);
                result_write_denial(w, denial, count, why_not);
                json_write_end(w);
        }
        if (process->outcome.signal == SIGSYS)
                result_write_foreign(w);
        json_write_end(w);
}

void method_write_result(Keeper *keeper, const Process *process, WaitFor what, JsonWriter *w) {
        const Outcome *out = &process->outcome;

        json_write_string(w, "id", process->id);
        json_write_string(w, "cause", cause_name(out->cause));
        json_write_int(w, "exit_code", out->exit_code);
        if (out->signal)
                json_write_int(w, "signal", out->signal);
        else
                json_write_null(w, "signal");
        result_write_usage(w, &out->usage, NULL);
        if (process->timeout)
                json_write_uint(w, "timeout_us", process->timeout);
        else
                json_write_null(w, "timeout_us");
        json_write_uint(w, "stdout_bytes", process->output.streams[0].bytes);
        json_write_uint(w, "stderr_bytes", process->output.streams[1].bytes);
        json_write_uint(w, "stdout_dropped", process->output.streams[0].dropped);
        json_write_uint(w, "stderr_dropped", process->output.streams[1].dropped);
        method_write_denials(keeper, process, w);
        process_write_set_aside(process, w);
        if (process->unrecorded[0] && unwritten_waits(keeper->unwritten, process->unrecorded_row))
                json_write_string(w, "unrecorded", process->unrecorded);
        if (what < WAIT_END_TEXT)
                return;
        process_write_output(process, 0, "stdout", what == WAIT_END_BASE64, w);
        process_write_output(process, 1, "stderr", what == WAIT_END_BASE64, w);
}

static const char *process_state(const Process *process) {
        if (process->running)
                return process->stopped ? "stopped" : "running";
        if (!process->answered)
                return "starting";
        return process_is_over(process) ? "ended" : "background";
}

static void write_process(const Process *process, JsonWriter *w) {
        json_write_object(w, NULL);
        json_write_string(w, "id", process->id);
        json_write_string(w, "command", process->command);
        json_write_string(w, "state", process_state(process));
        json_write_int(w, "pid", process->pid);
        json_write_uint(w, "started_ms", process->started_at_ms);
        if (process->settled) {
                json_write_string(w, "cause", cause_name(process->outcome.cause));
                json_write_int(w, "exit_code", process->outcome.exit_code);
                result_write_usage(w, &process->outcome.usage, NULL);
        }
        json_write_end(w);
}

int method_process_list(RpcCall *call, void *data, Error *error) {
        Keeper *keeper = data;
        JsonWriter *w = rpc_result(call);

        (void)error;
        json_write_array(w, "processes");
        for (const Process *p = processes_first(keeper->processes); p; p = p->next)
                write_process(p, w);
        json_write_end(w);
        rpc_reply(call);
        return 0;
}

static int find(const RpcCall *call, void *data, Process **ret, Error *error) {
        Keeper *keeper = data;

        return process_find(keeper->processes, rpc_string(call, "id"), ret, error);
}

static void reply_nothing(RpcCall *call) {
        (void)rpc_result(call);
        rpc_reply(call);
}

static void write_streams(const Process *process, JsonWriter *w) {
        json_write_uint(w, "stdout_bytes", process->output.streams[0].chunked);
        json_write_uint(w, "stderr_bytes", process->output.streams[1].chunked);
        json_write_array(w, "elsewhere");
        for (unsigned i = 0; i < CAPTURE_STREAMS; i++)
                if (process->elsewhere[i])
                        json_write_string(w, NULL, capture_stream_name(i));
        json_write_end(w);
}

int method_process_read(RpcCall *call, void *data, Error *error) {
        const uint64_t from = rpc_uint(call, "from", 1);
        uint64_t limit = rpc_uint(call, "limit", 100), next = from;
        const bool base64 = rpc_bool(call, "base64", false);
        Process *process;
        const CaptureChunk *c;
        JsonWriter *w;
        int r = find(call, data, &process, error);

        if (r < 0)
                return r;
        w = rpc_result(call);
        json_write_array(w, "chunks");
        for (c = process->output.first; c && limit > 0 && w->length < METHOD_ANSWER_MAX;
             c = c->next) {
                if (c->seq < from)
                        continue;
                json_write_object(w, NULL);
                capture_write_chunk(c, base64, w);
                json_write_end(w);
                next = c->seq + 1;
                limit--;
        }
        json_write_end(w);
        json_write_uint(w, "next", next);
        json_write_bool(w, "more", c && next < process->output.next_seq);
        write_streams(process, w);
        json_write_string(w, "state", process_state(process));
        rpc_reply(call);
        return 0;
}

int method_process_watch(RpcCall *call, void *data, Error *error) {
        Process *process;
        int r = find(call, data, &process, error);

        if (r == 0)
                r = capture_watch(&process->output, rpc_call_connection(call),
                                  rpc_uint(call, "from", 1), rpc_bool(call, "base64", false));
        if (r == -EBUSY)
                return error_set(error, ERROR_LIMIT, 0, "%s has %d watchers already", process->id,
                                 CAPTURE_WATCHERS_MAX);
        if (r == -ENOMEM)
                return error_oom(error);
        if (r == 0)
                reply_nothing(call);
        return r;
}

int method_process_unwatch(RpcCall *call, void *data, Error *error) {
        Process *process;
        int r = find(call, data, &process, error);

        if (r < 0)
                return r;
        capture_unwatch(&process->output, rpc_call_connection(call));
        reply_nothing(call);
        return 0;
}

/* --- acting on it --- */

int method_process_write(RpcCall *call, void *data, Error *error) {
        _cleanup_free_ char *bytes = NULL;
        size_t length = 0;
        Process *process;
        int r = method_take_content(call, "data", &bytes, &length, error);

        if (r == 0)
                r = find(call, data, &process, error);
        if (r == 0)
                r = process_write(process, bytes, length, error);
        if (r == 0)
                reply_nothing(call);
        return r;
}

int method_process_close_stdin(RpcCall *call, void *data, Error *error) {
        Process *process;
        int r = find(call, data, &process, error);

        if (r < 0)
                return r;
        process_close_input(process);
        reply_nothing(call);
        return 0;
}

int method_process_resize(RpcCall *call, void *data, Error *error) {
        Process *process;
        int r = find(call, data, &process, error);

        if (r == 0)
                r = process_resize(process, (uint16_t)rpc_uint(call, "rows", 0),
                                   (uint16_t)rpc_uint(call, "columns", 0), error);
        if (r == 0)
                reply_nothing(call);
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
        r = error_set(error, ERROR_USAGE, 0, "there is no signal \"%.20s\"", text);
        return error_cure(error, r, "As TERM, SIGTERM or 15");
}

int method_process_signal(RpcCall *call, void *data, Error *error) {
        Process *process;
        int number = 0, r = find(call, data, &process, error);

        if (r == 0)
                r = find_signal(rpc_string(call, "signal"), &number, error);
        if (r < 0)
                return r;
        if (rpc_bool(call, "all", false))
                process_signal_all(process, number);
        else
                process_signal(process, number);
        reply_nothing(call);
        return 0;
}

int method_process_resume(RpcCall *call, void *data, Error *error) {
        Process *process;
        int r = find(call, data, &process, error);

        if (r < 0)
                return r;
        process_resume(process);
        reply_nothing(call);
        return 0;
}

int method_process_kill(RpcCall *call, void *data, Error *error) {
        Process *process;
        int r = find(call, data, &process, error);

        if (r < 0)
                return r;
        json_write_bool(rpc_result(call), "killed", !process_is_over(process));
        process_kill(process);
        rpc_reply(call);
        return 0;
}

int method_process_wait(RpcCall *call, void *data, Error *error) {
        Process *process;
        int r = find(call, data, &process, error);

        return r < 0 ? r
                     : keeper_wait(data, call, process,
                                   wait_for_end(call, rpc_bool(call, "output", false)), error);
}
