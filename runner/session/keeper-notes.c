/* SPDX-License-Identifier: Apache-2.0 */
/* What a keeper writes into its session's history and audit. */
#include "policy/syscalls.h"
#include "sandbox/guard.h"
#include "session/keeper.h"

enum { NOTE_TIME = 100000 }; /* usec until a command that goes on is in the history */

/* A command that is over soon has one row written, at its end; one that goes on is noted meanwhile,
 * so that it is known after a crash. */
void keeper_note_running(void *data) {
        Keeper *keeper = data;
        Error ignored;

        for (Process *p = processes_first(keeper->processes); p; p = p->next)
                if (p->params && !p->settled && !p->history)
                        (void)store_history_begin(keeper->store, p->method, p->params, &p->history,
                                                  &ignored);
        keeper->noting = false;
}

void keeper_note(Keeper *keeper, Process *process, const char *method, char *params) {
        process->method = method;
        process->params = params;
        if (params && !keeper->noting)
                loop_timer_set(keeper->note_timer, loop_now() + NOTE_TIME);
        keeper->noting |= params != NULL;
}

static void end_history(Keeper *keeper, const Process *process) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        Error ignored;

        if (!process->params)
                return;
        json_write_object(&w, NULL);
        json_write_string(&w, "id", process->id);
        json_write_string(&w, "cause", cause_name(process->outcome.cause));
        json_write_int(&w, "exit_code", process->outcome.exit_code);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return;
        if (process->history)
                (void)store_history_end(keeper->store, process->history, w.data, &ignored);
        else
                (void)store_history_add(keeper->store, process->method, process->params, w.data,
                                        process->started_at_ms, &ignored);
}

/* Refused calls since the last time. */
void keeper_audit_denials(Keeper *keeper) {
        for (unsigned i = 0; i < keeper->denials.count; i++) {
                const Denial *denial = &keeper->denials.items[i];
                const uint64_t before = i < keeper->audited.count ? keeper->audited.items[i].count
                                                                  : 0;
                _cleanup_(json_write_clear) JsonWriter w = { 0 };
                Error ignored;

                if (denial->count == before)
                        continue;
                json_write_object(&w, NULL);
                json_write_string(&w, "layer", "seccomp");
                json_write_string(&w, "what", syscall_name(denial->nr));
                json_write_uint(&w, "count", denial->count - before);
                json_write_end(&w);
                if (json_write_finish(&w) == 0)
                        (void)store_audit_add(keeper->store, "denial", w.data, &ignored);
        }
        keeper->audited = keeper->denials;
}

static void audit_end(Keeper *keeper, const Process *process) {
        const Cause cause = process->outcome.cause;
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        Error ignored;

        if (cause != CAUSE_TIMEOUT && cause != CAUSE_KILLED)
                return;
        json_write_object(&w, NULL);
        json_write_string(&w, "id", process->id);
        json_write_string(&w, "cause", cause_name(cause));
        json_write_end(&w);
        if (json_write_finish(&w) == 0)
                (void)store_audit_add(keeper->store, cause == CAUSE_KILLED ? "kill" : "limit",
                                      w.data, &ignored);
}

void keeper_note_end(Keeper *keeper, const Process *process) {
        end_history(keeper, process);
        audit_end(keeper, process);
}

void keeper_sweep(Keeper *keeper) {
        _cleanup_(strlist_clear) StrList moved = { 0 };
        Error error;

        if (keeper->launch.workspace_fd < 0)
                return;
        (void)guard_sweep(&keeper->plan, keeper->launch.workspace_fd, &moved, &error);
        for (size_t i = 0; i < moved.count; i++) {
                _cleanup_(json_write_clear) JsonWriter w = { 0 };

                json_write_object(&w, NULL);
                json_write_string(&w, "set_aside", moved.items[i]);
                json_write_end(&w);
                if (json_write_finish(&w) == 0)
                        (void)store_audit_add(keeper->store, "guard", w.data, &error);
        }
}
