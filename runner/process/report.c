/* SPDX-License-Identifier: Apache-2.0 */
#include "process/report.h"

#include <stdlib.h>

#include "base/base64.h"

void process_write_end(const Process *process, JsonWriter *w) {
        json_write_string(w, "id", process->id);
        outcome_write_end(w, cause_name(process->outcome.cause), process->outcome.exit_code);
}

int process_end_document(const Process *process, JsonWriter *ret) {
        json_write_object(ret, NULL);
        process_write_end(process, ret);
        json_write_end(ret);
        return json_write_finish(ret);
}

void process_mark_denials(Process *process, const Denials *calls, const NetDenials *network,
                          const GatewayDenials *gateway) {
        process->denied_before = *calls;
        net_denials_count(network, &process->net_denied_before);
        gateway_denials_count(gateway, &process->gateway_denied_before);
}

void process_write_set_aside(const Process *process, JsonWriter *w) {
        json_write_array(w, "set_aside");
        for (size_t i = 0; i < process->set_aside.count; i++)
                json_write_string(w, NULL, process->set_aside.items[i]);
        json_write_end(w);
        if (process->still_aside.count > 0) {
                json_write_array(w, "still_aside");
                for (size_t i = 0; i < process->still_aside.count; i++)
                        json_write_string(w, NULL, process->still_aside.items[i]);
                json_write_end(w);
        }
        if (process->unguarded[0])
                json_write_string(w, "unguarded", process->unguarded);
        json_write_string(w, "replaced", process->replaced);
}

void process_write_output(const Process *process, unsigned stream, const char *key, bool base64,
                          JsonWriter *w) {
        size_t length = 0;
        _cleanup_free_ char *text = capture_text(&process->output, stream, &length);
        _cleanup_free_ char *encoded = base64 && text ? base64_encode(text, length) : NULL;

        if (base64)
                json_write_string(w, key, encoded);
        else
                json_write_bytes(w, key, text ? text : "", length);
}
