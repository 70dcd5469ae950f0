/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the end of a command or a run into replies, in the shapes of methods/outcome.c. */
#include <signal.h>

#include "keeper/keeper.h"
#include "outcome/result.h"
#include "process/report.h"
#include "store/unwritten.h"

/* needed: the session has rules for a network. Without them, it needs holt-egress only for ports.
 */
static void keeper_write_network(const Keeper *keeper, const NetCounts *before, bool missed,
                                 JsonWriter *w) {
        const Network *network = &keeper->sandbox.network;
        const bool rules = keeper->settings.policy.network == NETWORK_ALLOW;
        const uint64_t omitted = net_denials_omitted(network->denials, before);

        net_denials_write_unreached(w, network->denials, before);
        if (omitted > 0)
                json_write_uint(w, "denials_omitted", omitted);
        if (network->lost && (network_needed(&keeper->plan) || network->published.count > 0))
                json_write_bool(w, "network_lost", true);
        if (keeper->sandbox.gateway.lost)
                json_write_bool(w, "routes_lost", true);
        if (missed && !(rules && (network->denials ? network->denials->total : 0) > before->total))
                json_write_bool(w, "network_missed", true);
}

void keeper_write_refused(const Keeper *keeper, const Process *process, const Refusals *refusals,
                          const Symptoms *symptoms, JsonWriter *w) {
        const Denials *before = &process->denied_before;

        json_write_array(w, "denials");
        for (unsigned i = 0; i < keeper->denials.count; i++) {
                const Denial *denial = &keeper->denials.items[i];
                uint64_t count = denial->count - (i < before->count ? before->items[i].count : 0);

                if (count == 0)
                        continue;
                json_write_object(w, NULL);
                result_write_denial(w, &keeper->settings.policy, &keeper->launch.layers, denial,
                                    count);
                json_write_end(w);
        }
        if (process->outcome.signal == SIGSYS)
                result_write_foreign(w);
        result_write_refusals(w, refusals);
        net_denials_write(w, keeper->sandbox.network.denials, &process->net_denied_before, true);
        gateway_denials_write(w, keeper->sandbox.gateway.denials, &process->gateway_denied_before);
        json_write_end(w);
        keeper_write_network(keeper, &process->net_denied_before, symptoms->network_missed, w);
        limits_hit_write(w, &symptoms->limits_hit, &keeper->plan, &keeper->settings.policy);
}

void keeper_write_denials(const Keeper *keeper, const Process *process, uint64_t timeout,
                          const Refusals *refusals, const Symptoms *symptoms, JsonWriter *w) {
        keeper_write_refused(keeper, process, refusals, symptoms, w);
        if (timeout > 0 && timeout == keeper->settings.policy.timeout &&
            policy_of_project(&keeper->settings.policy, "limits.timeout"))
                json_write_bool(w, "timeout_by_project", true);
        keeper_aside_write_stopped(keeper, process, w);
}

void keeper_write_result(const Keeper *keeper, const Process *process, WaitFor what,
                         JsonWriter *w) {
        const Outcome *out = &process->outcome;

        process_write_end(process, w);
        json_write_uint_or_null(w, "signal", (uint64_t)out->signal);
        result_write_usage(w, &out->usage, NULL);
        json_write_uint_or_null(w, "timeout_us", process->timeout);
        json_write_uint(w, "stdout_bytes", process->output.streams[0].bytes);
        json_write_uint(w, "stderr_bytes", process->output.streams[1].bytes);
        json_write_uint(w, "stdout_dropped", process->output.streams[0].dropped);
        json_write_uint(w, "stderr_dropped", process->output.streams[1].dropped);
        keeper_write_denials(keeper, process, process->timeout, out->refusals, &out->symptoms, w);
        process_write_set_aside(process, w);
        if (process->stream_error[0])
                json_write_string(w, "stream_error", process->stream_error);
        if (process->unrecorded[0] && unwritten_waits(keeper->unwritten, process->unrecorded_row))
                json_write_string(w, "unrecorded", process->unrecorded);
        if (what < WAIT_END_TEXT)
                return;
        process_write_output(process, 0, "stdout", what == WAIT_END_BASE64, w);
        process_write_output(process, 1, "stderr", what == WAIT_END_BASE64, w);
}
