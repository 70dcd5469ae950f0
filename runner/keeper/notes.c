/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the session's history and audit. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/time.h"
#include "keeper/acts.h"
#include "keeper/keeper.h"
#include "outcome/result.h"
#include "process/report.h"
#include "store/unwritten.h"

enum { NOTE_TIME = 100000 }; /* usec after which a running command gets its row. */

struct Notes {
        LoopTimer *timer;
        bool set; /* timer is set. */
};

void keeper_note_begun(Keeper *keeper, Process *process) {
        Error ignored;

        if (process->params && !process->settled && !process->history)
                (void)store_history_begin(keeper->store, process->method, process->params,
                                          process->started_at_ms, &process->history, &ignored);
}

/* A short command gets one row, at its end, when its call is replied to. A longer one gets its row
 * while it runs, so that it is known after a crash. */
static void notes_on_time(void *data) {
        Keeper *keeper = data;

        for (Process *p = processes_first(keeper->processes); p; p = p->next)
                keeper_note_begun(keeper, p);
        keeper->notes->set = false;
}

int keeper_notes_new(Keeper *keeper, Error *reterr) {
        keeper->notes = calloc(1, sizeof(*keeper->notes));
        return keeper->notes ? loop_timer_new(keeper->loop, notes_on_time, keeper,
                                              &keeper->notes->timer, reterr)
                             : error_oom(reterr);
}

void keeper_notes_free(Keeper *keeper) {
        if (keeper->notes)
                keeper->notes->timer = loop_timer_free(keeper->notes->timer);
        free(keeper->notes);
        keeper->notes = NULL;
}

void keeper_note(Keeper *keeper, Process *process, const char *method, char *params) {
        process->method = method;
        process->params = params;
        if (!params || keeper->notes->set)
                return;
        loop_timer_set(keeper->notes->timer, time_now_usec() + NOTE_TIME);
        keeper->notes->set = true;
}

const char *keeper_note_call(Keeper *keeper, const char *method, const char *params,
                             const char *result, uint64_t started_ms) {
        const StoreHistory row = { .name = method,
                                   .params = params,
                                   .result = result,
                                   .started_ms = started_ms,
                                   .ended_ms = time_epoch_ms() };

        return unwritten_record(keeper->unwritten, &row);
}

static void note_write_answer(JsonWriter *w, const Error *error) {
        json_write_object(w, NULL);
        json_write_bool(w, "success", !error);
        if (error) {
                json_write_string(w, "kind", error_kind_name(error->kind));
                json_write_string(w, "errno",
                                  error->errnum > 0 ? error_errno_name(error->errnum) : NULL);
                json_write_string(w, "error", error->text);
        }
        json_write_end(w);
}

void keeper_note_answer(RpcCall *call, const Error *error, void *data) {
        static const char *const areas[] = { "files.", "mount." };
        const char *name = rpc_call_method(call)->name;
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_free_ char *params = NULL;
        Keeper *keeper = data;

        if (!str_starts(name, areas[0]) && !str_starts(name, areas[1]))
                return keeper_touched(keeper, false);
        keeper_touched(keeper, true);
        keeper->used_at = time_now_usec();
        if (act_goes_on(keeper->acts, rpc_call_connection(call)))
                return;
        params = rpc_params_text(call);
        note_write_answer(&w, error);
        if (!params || json_write_finish(&w) < 0)
                return;
        w.data[w.length - 1] = '\0'; /* Removes the newline. */
        (void)keeper_note_call(keeper, name, params, w.data, rpc_call_started_ms(call));
}

static void end_history(Keeper *keeper, Process *process) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        StoreHistory row = { .id = process->history,
                             .name = process->method,
                             .params = process->params,
                             .started_ms = process->started_at_ms,
                             .ended_ms = time_epoch_ms() };
        const char *why;

        if (!process->params)
                return;
        if (process_end_document(process, &w) < 0)
                return;
        row.result = w.data;
        why = unwritten_record(keeper->unwritten, &row);
        if (!why)
                return;
        (void)snprintf(process->unrecorded, sizeof(process->unrecorded), "%s", why);
        process->unrecorded_row = unwritten_last(keeper->unwritten);
}

/* Writes the commands that may have made the refused calls: those that ran meanwhile. The kernel's
 * notice has a pid, but that may be any descendant of a command, and the descendant may be gone. */
static void write_execs(const Keeper *keeper, const Process *settled, JsonWriter *w) {
        json_write_array(w, "execs");
        for (const Process *p = processes_first(keeper->processes); p; p = p->next)
                if (p == settled || (p->started && !p->gone))
                        json_write_string(w, NULL, p->id);
        json_write_end(w);
}

static void audit_denial(Keeper *keeper, const Denial *denial, uint64_t count,
                         const Process *settled) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        result_write_denial(&w, &keeper->settings.policy, &keeper->launch.layers, denial, count);
        write_execs(keeper, settled, &w);
        json_write_end(&w);
        if (json_write_finish(&w) == 0)
                unwritten_audit(keeper->unwritten, "denial", w.data);
}

void keeper_audit_denial_of(const Keeper *keeper, const Process *process, JsonWriter *w) {
        json_write_array(w, "execs");
        json_write_string(w, NULL, process->id);
        json_write_end(w);
        json_write_end(w);
        if (json_write_finish(w) == 0)
                unwritten_audit(keeper->unwritten, "denial", w->data);
}

/* Audits a program of a foreign ABI. */
static void audit_foreign(const Keeper *keeper, const Process *process) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        if (process->outcome.signal != SIGSYS)
                return;
        json_write_object(&w, NULL);
        result_write_foreign_members(&w);
        keeper_audit_denial_of(keeper, process, &w);
}

void keeper_audit_denials(Keeper *keeper, const Process *settled) {
        for (unsigned i = 0; i < keeper->denials.count; i++) {
                const Denial *denial = &keeper->denials.items[i];
                const uint64_t before = i < keeper->audited.count ? keeper->audited.items[i].count
                                                                  : 0;

                if (denial->count > before)
                        audit_denial(keeper, denial, denial->count - before, settled);
        }
        keeper->audited = keeper->denials;
}

void keeper_audit_end(Keeper *keeper, const char *id, Cause cause) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        if (cause != CAUSE_TIMEOUT && cause != CAUSE_KILLED && cause != CAUSE_OOM)
                return;
        json_write_object(&w, NULL);
        json_write_string(&w, "id", id);
        json_write_string(&w, "cause", cause_name(cause));
        json_write_end(&w);
        if (json_write_finish(&w) == 0)
                unwritten_audit(keeper->unwritten, cause == CAUSE_KILLED ? "kill" : "limit",
                                w.data);
}

void keeper_note_end(Keeper *keeper, Process *process) {
        end_history(keeper, process);
        if (!process->done)
                keeper_audit_end(keeper, process->id, process->outcome.cause);
        audit_foreign(keeper, process);
}

void keeper_audit_guard(Keeper *keeper, const char *what, const char *text) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_string(&w, what, text);
        json_write_end(&w);
        if (json_write_finish(&w) == 0)
                unwritten_audit(keeper->unwritten, "guard", w.data);
}

void keeper_audit_replaced(Keeper *keeper, const char *what, const char *path) {
        keeper_audit_guard(keeper, what, path);
}
