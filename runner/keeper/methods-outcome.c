/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a command or a run, in replies. */
#include <signal.h>

#include "keeper/methods.h"
#include "process/report.h"
#include "sandbox/result.h"
#include "store/unwritten.h"

/* --- its shape --- */

const char *const method_causes[] = { "exited",       "signaled", "timeout",
                                      "output_limit", "killed",   "oom",
                                      "lost",         "error",    NULL };
static_assert(ELEMENTSOF(method_causes) == CAUSE_MAX + 1, "every cause is listed");

static const RpcField usage_fields[] = {
        { "wall_us", RPC_UINT, RPC_OR_NULL, "time from start to end, in microseconds" },
        { "user_us", RPC_UINT, RPC_OR_NULL, "processor time in user mode, in microseconds" },
        { "system_us", RPC_UINT, RPC_OR_NULL, "processor time in the kernel, in microseconds" },
        { "max_rss_bytes", RPC_UINT, RPC_OR_NULL, "memory of the largest process at its peak" },
};
const RpcShape method_usage = { .name = "Usage",
                                .help = "time and memory that were used; null if not known",
                                RPC_FIELDS(usage_fields) };

static const RpcField denial_fields[] = {
        { "layer", RPC_STRING, RPC_ALWAYS, "the layer that refused it, such as \"seccomp\"" },
        { "what", RPC_STRING, RPC_ALWAYS, "the system call that was refused" },
        { "count", RPC_UINT, RPC_ALWAYS, "how often" },
        { "answer", RPC_STRING, RPC_ALWAYS, "the errno that the program got, or \"SIGSYS\"" },
        { "grant", RPC_STRING, RPC_OR_NULL, "the option of holt create that would allow it" },
        { "why_not", RPC_STRING, RPC_OR_NULL, "why no option allows it" },
};
static const RpcShape denial_shape = { .name = "Denial",
                                       .help = "something that the policy refused",
                                       RPC_FIELDS(denial_fields) };

static const RpcField outcome_fields[] = {
        { "id", RPC_STRING, RPC_ALWAYS, "the process: \"p1\"" },
        { "cause", RPC_STRING, RPC_ALWAYS, "how it ended", .values = method_causes },
        { "exit_code", RPC_UINT, RPC_ALWAYS, "128 + n after signal n, 124 after a timeout" },
        { "timeout_us", RPC_UINT, RPC_OR_NULL, "its time limit, in microseconds" },
        { "usage", RPC_SHAPE, RPC_ALWAYS, NULL, .shape = &method_usage },
        { "stdout_dropped", RPC_UINT, RPC_ALWAYS, "bytes of stdout that were not kept" },
        { "stderr_dropped", RPC_UINT, RPC_ALWAYS, "bytes of stderr that were not kept" },
        { "denials", RPC_SHAPES, RPC_ALWAYS, "refused in the session while it ran",
          .shape = &denial_shape },
        { "set_aside", RPC_STRINGS, RPC_ALWAYS,
          "files moved away from protected paths: relative to the workspace, or absolute" },
        { "unguarded", RPC_STRING, RPC_SOMETIMES,
          "why a file at a protected path could not be moved away" },
        { "replaced", RPC_STRING, RPC_OR_NULL,
          "the protected path that the host replaced, so that holt stopped the sandbox" },
        { "unrecorded", RPC_STRING, RPC_SOMETIMES, "why it is not in the history yet" },
};
const RpcShape method_outcome = { .name = "Outcome", RPC_FIELDS(outcome_fields) };

static const RpcField ended_fields[] = {
        { "signal", RPC_UINT, RPC_OR_NULL, "the signal that ended it" },
        { "stdout_bytes", RPC_UINT, RPC_ALWAYS, "bytes that it wrote to stdout" },
        { "stderr_bytes", RPC_UINT, RPC_ALWAYS, "bytes that it wrote to stderr" },
};
const RpcShape method_ended = { .name = "Ended",
                                .help = "how a command ended",
                                RPC_FIELDS(ended_fields),
                                .base = &method_outcome };

static const RpcField output_fields[] = {
        { "stdout", RPC_STRING, RPC_ALWAYS, "what was kept of stdout: text, or base64" },
        { "stderr", RPC_STRING, RPC_ALWAYS, "what was kept of stderr: text, or base64" },
};
const RpcShape method_result = { .name = "Result",
                                 .help = "how a command ended, and its output",
                                 RPC_FIELDS(output_fields),
                                 .base = &method_ended };

/* --- writing it --- */

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
