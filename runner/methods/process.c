/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that read from commands that have started, or wait for them. */
#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "methods/area.h"
#include "methods/past.h"
#include "outcome/result.h"
#include "process/report.h"

enum {
        EXPLAIN_STDERR_MAX = 32 * 1024, /* bytes of base64 */
};

/* --- reading --- */

static const char *process_state(const Process *process) {
        if (process->running || process->delivers)
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
                outcome_write_end(w, cause_name(process->outcome.cause),
                                  process->outcome.exit_code);
                result_write_usage(w, &process->outcome.usage, NULL);
        }
        json_write_end(w);
}

static int method_process_list(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        const Network *network = &keeper->sandbox.network;
        JsonWriter *w = rpc_result(call);

        (void)error;
        json_write_array(w, "processes");
        for (const Process *p = processes_first(keeper->processes); p; p = p->next)
                write_process(p, w);
        json_write_end(w);
        json_write_array(w, "ports");
        net_published_write(w, network->lost ? NULL : &network->published);
        json_write_end(w);
        rpc_reply(call);
        return 0;
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

static int method_process_read(RpcCall *call, void *data, Error *error) {
        const uint64_t from = rpc_uint(call, "from", 1);
        uint64_t limit = rpc_uint(call, "limit", 100), next = from;
        const bool base64 = rpc_bool(call, "base64", false);
        Process *process;
        const CaptureChunk *c;
        JsonWriter *w;
        int r = past_process(data, rpc_string(call, "id"), true, &process, error);

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

static int method_process_watch(RpcCall *call, void *data, Error *error) {
        Process *process;
        int r = past_process(data, rpc_string(call, "id"), true, &process, error);

        if (r == 0)
                r = capture_watch(&process->output, rpc_call_connection(call),
                                  rpc_uint(call, "from", 1), rpc_bool(call, "base64", false));
        if (r == -EBUSY)
                return error_set(error, ERROR_LIMIT, 0, "%s has %d watchers already", process->id,
                                 CAPTURE_WATCHERS_MAX);
        if (r == -ENOMEM)
                return error_oom(error);
        if (r == 0)
                rpc_reply_empty(call);
        return r;
}

static int method_process_unwatch(RpcCall *call, void *data, Error *error) {
        Process *process;
        int r = method_find_process(call, data, &process, error);

        if (r < 0)
                return r;
        capture_unwatch(&process->output, rpc_call_connection(call));
        rpc_reply_empty(call);
        return 0;
}

WaitFor method_wait_for_end(const RpcCall *call, bool output) {
        if (!output)
                return WAIT_END;
        return rpc_bool(call, "base64", false) ? WAIT_END_BASE64 : WAIT_END_TEXT;
}

static int method_process_wait(RpcCall *call, void *data, Error *error) {
        Keeper *keeper = data;
        const char *id = rpc_string(call, "id");
        Process *process;
        int r = process_find(keeper->processes, id, &process, error);

        if (r == -ENOENT)
                return past_wait(keeper, call, id, error);
        return r < 0 ? r
                     : keeper_wait(
                               data, call, process,
                               rpc_bool(call, "all", false)
                                       ? WAIT_GONE
                                       : method_wait_for_end(call, rpc_bool(call, "output", false)),
                               error);
}

/* --- explaining --- */

/* Returns the text of the parameter stderr, with blanks for NUL bytes; "" if it is missing. Owned
 * by the caller; NULL with *error set. */
static char *explain_take_text(const RpcCall *call, Error *error) {
        const char *encoded = rpc_string(call, "stderr");
        char *text = NULL;
        size_t length = 0;
        int r = base64_decode(encoded ? encoded : "", &text, &length);

        if (r < 0) {
                (void)error_set(error, ERROR_USAGE, -r, "stderr is not base64");
                return NULL;
        }
        for (size_t i = 0; i < length; i++)
                if (text[i] == '\0')
                        text[i] = ' ';
        return text;
}

/* The result of the command has everything that the keeper itself could find in this text. */
static int explain_tell_text(RpcCall *call, const Process *process, Error *error) {
        _cleanup_free_ char *text = keeper_last_words(process);
        _cleanup_free_ char *encoded = text ? base64_encode(text, strlen(text)) : NULL;
        JsonWriter *w = rpc_result(call);

        if (!encoded)
                return error_oom(error);
        json_write_array(w, "denials");
        json_write_end(w);
        json_write_array(w, "limits_hit");
        json_write_end(w);
        json_write_string(w, "stderr", encoded);
        rpc_reply(call);
        return 0;
}

/* Tells what was refused to a process that still runs, since the last such request. */
static int explain_tell_running(Keeper *keeper, RpcCall *call, Process *process, Error *error) {
        _cleanup_free_ char *text = explain_take_text(call, error);
        Symptoms symptoms;
        Refusals *refusals;

        if (!text)
                return -EINVAL;
        keeper_read_network(keeper);
        keeper_read_gateway(keeper);
        refusals = keeper_find_running(keeper, process, text, &symptoms);
        keeper_write_refused(keeper, process, refusals, &symptoms, rpc_result(call));
        refused_free(refusals);
        process_mark_denials(process, &keeper->denials, keeper->sandbox.network.denials,
                             keeper->sandbox.gateway.denials);
        rpc_reply(call);
        return 0;
}

/* The command may have written to files of the caller, so that only the caller knows the text. */
static int method_process_explain(RpcCall *call, void *data, Error *error) {
        Keeper *keeper = data;
        _cleanup_(strlist_clear) StrList argv = { 0 };
        _cleanup_free_ char *text = NULL;
        Refusals *refusals;
        Process *process;
        Symptoms symptoms;
        JsonWriter *w;
        int r = method_find_process(call, data, &process, error);

        if (r == 0 && rpc_has(call, "argv"))
                r = rpc_strings(call, "argv", &argv, error);
        if (r < 0)
                return r;
        if (rpc_bool(call, "running", false))
                return explain_tell_running(keeper, call, process, error);
        if (!rpc_has(call, "argv") && !rpc_has(call, "stderr"))
                return explain_tell_text(call, process, error);
        text = explain_take_text(call, error);
        if (!text)
                return -EINVAL;
        refusals = keeper_find_refusals(keeper, process, text, argv.items, &symptoms);
        w = rpc_result(call);
        json_write_array(w, "denials");
        result_write_refusals(w, refusals);
        json_write_end(w);
        limits_hit_write(w, &symptoms.limits_hit, &keeper->plan, &keeper->settings.policy);
        if (symptoms.network_missed)
                json_write_bool(w, "network_missed", true);
        refused_free(refusals);
        rpc_reply(call);
        return 0;
}

/* --- the table --- */

static const RpcParam explain_params[] = {
        METHOD_PROCESS_ID,
        { "stderr", RPC_STRING, false, EXPLAIN_STDERR_MAX,
          "the end of the command's stderr, in base64" },
        { "argv", RPC_STRINGS, false, 4096,
          "the command and its arguments, if stderr is not known" },
        { "running", RPC_BOOL, false, 0,
          "the command still runs: return everything that was refused since the last such request; "
          "stderr is what it has printed since then" },
};

static const char *const streams[] = { "stdout", "stderr", NULL };
static_assert(ELEMENTSOF(streams) == CAPTURE_STREAMS + 1, "every stream is listed");

static const char *const states[] = {
        "starting", "running", "stopped", "background", "ended", NULL
};

static const RpcParam id_params[] = {
        METHOD_PROCESS_ID,
};

static const RpcParam wait_params[] = {
        METHOD_PROCESS_ID,
        { "output", RPC_BOOL, false, 0, "include stdout and stderr in the reply" },
        { "all", RPC_BOOL, false, 0,
          "wait until everything that the command has started has ended, too; without output" },
        { "base64", RPC_BOOL, false, 0, "return stdout and stderr in base64" },
};

static const RpcParam read_params[] = {
        METHOD_PROCESS_ID,
        { "from", RPC_UINT, false, 0, "number of the first chunk; default 1" },
        { "limit", RPC_UINT, false, 1000,
          "maximum number of chunks, default 100; fewer if they have more than 900 KiB" },
        { "base64", RPC_BOOL, false, 0, "return the chunks in base64, not as text" },
};

static const RpcParam watch_params[] = {
        METHOD_PROCESS_ID,
        { "from", RPC_UINT, false, 0, "number of the first chunk; default 1" },
        { "base64", RPC_BOOL, false, 0, "send the chunks in base64, not as text" },
};

static const RpcField entry_fields[] = {
        { "id", RPC_STRING, RPC_ALWAYS, "id of the process, such as \"p1\"" },
        { "command", RPC_STRING, RPC_ALWAYS, "the command line" },
        { "state", RPC_STRING, RPC_ALWAYS,
          "background: the command has ended, but processes that it started still run",
          .values = states },
        { "pid", RPC_UINT, RPC_ALWAYS, "PID inside the sandbox; 0 until the command has started" },
        { "started_ms", RPC_UINT, RPC_ALWAYS,
          "time of the start, in milliseconds since the epoch" },
        { "cause", RPC_STRING, RPC_SOMETIMES, "how the command ended", .values = method_causes },
        { "exit_code", RPC_UINT, RPC_SOMETIMES, "exit code of a command that has ended" },
        { "usage", RPC_SHAPE, RPC_SOMETIMES,
          "time and memory that the command used, if it has ended", .shape = &method_usage },
};
static const RpcShape entry_shape = { .name = "Process",
                                      .help = "a command of the session",
                                      RPC_FIELDS(entry_fields) };

static const RpcField list_fields[] = {
        { "processes", RPC_SHAPES, RPC_ALWAYS, "the newest first", .shape = &entry_shape },
        { "ports", RPC_SHAPES, RPC_ALWAYS, "ports of the host that lead into the session",
          .shape = &method_port },
};
static const RpcShape list_shape = { .name = "ProcessList", RPC_FIELDS(list_fields) };

static const RpcField chunk_fields[] = {
        { "seq", RPC_UINT, RPC_ALWAYS, "number of the chunk; counts both streams from 1" },
        { "stream", RPC_STRING, RPC_ALWAYS, "the stream to which it was written",
          .values = streams },
        { "offset", RPC_UINT, RPC_ALWAYS, "bytes of the stream before this chunk" },
        { "text", RPC_STRING, RPC_SOMETIMES, "the chunk, unless base64 was asked for" },
        { "base64", RPC_STRING, RPC_SOMETIMES, "the chunk, if base64 was asked for" },
};
static const RpcShape chunk_shape = { .name = "Chunk",
                                      .help = "a chunk of a process's output",
                                      RPC_FIELDS(chunk_fields) };

static const RpcField read_fields[] = {
        { "chunks", RPC_SHAPES, RPC_ALWAYS, "the chunks, the oldest first", .shape = &chunk_shape },
        { "next", RPC_UINT, RPC_ALWAYS, "the value of \"from\" for the chunks that follow" },
        { "more", RPC_BOOL, RPC_ALWAYS, "whether more chunks are kept" },
        { "stdout_bytes", RPC_UINT, RPC_ALWAYS, "bytes of stdout up to now" },
        { "stderr_bytes", RPC_UINT, RPC_ALWAYS, "bytes of stderr up to now" },
        { "elsewhere", RPC_STRINGS, RPC_ALWAYS,
          "streams that are not kept, because they went to the caller's own descriptors or "
          "terminal" },
        { "state", RPC_STRING, RPC_ALWAYS,
          "background: the command has ended, but processes that it started still run",
          .values = states },
};
static const RpcShape output_shape = { .name = "Output", RPC_FIELDS(read_fields) };

static const RpcField wait_fields[] = {
        { "stdout", RPC_STRING, RPC_SOMETIMES, "with \"output\": text, or base64" },
        { "stderr", RPC_STRING, RPC_SOMETIMES, "with \"output\": text, or base64" },
};
static const RpcShape waited_shape = { .name = "Waited",
                                       RPC_FIELDS(wait_fields),
                                       .base = &method_ended };

static const RpcField output_note_fields[] = {
        METHOD_NOTE_FIELDS,
        { "id", RPC_STRING, RPC_ALWAYS, "id of the process, such as \"p1\"" },
};
static const RpcShape output_note_shape = { .name = "OutputNote",
                                            RPC_FIELDS(output_note_fields),
                                            .base = &chunk_shape };
const RpcOutgoing method_process_output = {
        .name = "process.output",
        .help = "a chunk of a watched process's output",
        .params = &output_note_shape,
        .example = { "{\"session\": \"work\", \"id\": \"p1\", \"seq\": 1, \"stream\": \"stdout\","
                     " \"offset\": 0, \"text\": \"ready\\n\"}" },
};

static const RpcField stopped_note_fields[] = {
        METHOD_NOTE_FIELDS,
        { "id", RPC_STRING, RPC_ALWAYS, "id of the process, such as \"p1\"" },
        { "signal", RPC_UINT, RPC_ALWAYS, "the signal that stopped it" },
};
static const RpcShape stopped_note_shape = { .name = "StoppedNote",
                                             RPC_FIELDS(stopped_note_fields) };
const RpcOutgoing method_process_stopped = {
        .name = "process.stopped",
        .help = "a command with a terminal was stopped, for example by Ctrl-Z",
        .params = &stopped_note_shape,
        .example = { "{\"session\": \"work\", \"id\": \"p1\", \"signal\": 20}" },
};

static const RpcField exited_note_fields[] = {
        METHOD_NOTE_FIELDS,
        { "id", RPC_STRING, RPC_ALWAYS, "id of the process, such as \"p1\"" },
        { "cause", RPC_STRING, RPC_ALWAYS, "how the command ended", .values = method_causes },
        { "exit_code", RPC_UINT, RPC_ALWAYS,
          "exit code of the command; 128 + n after signal n, 124 after a timeout" },
};
static const RpcShape exited_note_shape = { .name = "ExitedNote", RPC_FIELDS(exited_note_fields) };
const RpcOutgoing method_process_exited = {
        .name = "process.exited",
        .help = "a watched process has ended; all of its output was sent before this",
        .params = &exited_note_shape,
        .example = { "{\"session\": \"work\", \"id\": \"p1\", \"cause\": \"exited\","
                     " \"exit_code\": 0}" },
};

static const RpcMethod methods[] = {
        {
                .name = "process.list",
                .help = "lists the commands of the session",
                .result = &list_shape,
                .example = { "{}", "{\"processes\": [{\"id\": \"p1\", \"command\": \"sleep 60\","
                                   " \"state\": \"running\", \"pid\": 7,"
                                   " \"started_ms\": 1700000000000}],"
                                   " \"ports\": [{\"address\": \"127.0.0.1:49152\","
                                   " \"port\": 3000}]}" },
                .at_rest = true,
                .function = method_process_list,
        },
        {
                .name = "process.read",
                .help = "reads what a process has printed, in chunks",
                RPC_PARAMS(read_params),
                .result = &output_shape,
                .errors = RPC_ERROR(NO_PROCESS),
                .example = { "{\"id\": \"p1\"}",
                             "{\"chunks\": [{\"seq\": 1, \"stream\": \"stdout\", \"offset\": 0,"
                             " \"text\": \"ready\\n\"}], \"next\": 2, \"more\": false,"
                             " \"stdout_bytes\": 6, \"stderr_bytes\": 0, \"elsewhere\": [],"
                             " \"state\": \"running\"}" },
                .function = method_process_read,
        },
        {
                .name = "process.watch",
                .help = "from now on, sends notifications about the output and the end of a "
                        "process",
                RPC_PARAMS(watch_params),
                .result = &rpc_nothing,
                .errors = RPC_ERROR(NO_PROCESS),
                .sends = { &method_process_output, &method_process_stopped,
                           &method_process_exited },
                .example = { "{\"id\": \"p1\", \"from\": 1}", "{}" },
                .function = method_process_watch,
        },
        {
                .name = "process.unwatch",
                .help = "ends process.watch",
                RPC_PARAMS(id_params),
                .result = &rpc_nothing,
                .errors = RPC_ERROR(NO_PROCESS),
                .example = { "{\"id\": \"p1\"}", "{}" },
                .function = method_process_unwatch,
        },
        {
                .name = "process.wait",
                .help = "waits until a command has ended",
                RPC_PARAMS(wait_params),
                .result = &waited_shape,
                .errors = RPC_ERROR(NO_PROCESS) | RPC_ERROR(USAGE) | RPC_ERROR(NOT_FOUND) |
                          RPC_ERROR(NOT_EXECUTABLE),
                .example = { "{\"id\": \"p1\"}", METHOD_ENDED_EXAMPLE("") },
                .function = method_process_wait,
        },
        {
                .name = "process.explain",
                .help = "finds the paths that were refused to a failed command, and the limits "
                        "that it reached, if its stderr went to a file or terminal of the client; "
                        "or what was refused to a command that still runs",
                RPC_PARAMS(explain_params),
                .result = &method_refused,
                .errors = RPC_ERROR(NO_PROCESS) | RPC_ERROR(USAGE),
                .example = { "{\"id\": \"p1\", \"argv\": [\"cat\", \"notes\"]}",
                             "{\"denials\": [], \"limits_hit\": []}" },
                .function = method_process_explain,
        },
};
const MethodArea method_process_area = { methods, ELEMENTSOF(methods) };
