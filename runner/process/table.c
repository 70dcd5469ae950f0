/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a session's processes: finds them, drops the oldest, and lets clients leave. */
#include "process/process-internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"

int processes_new(Loop *loop, const Launch *launch, Sandbox *sandbox, const ProcessEvents *events,
                  Processes **ret, Error *reterr) {
        Processes *all = malloc(sizeof(*all));
        int r;

        if (!all)
                return error_oom(reterr);
        *all = (Processes){ .loop = loop,
                            .launch = launch,
                            .sandbox = sandbox,
                            .events = *events,
                            .room_fd = FD_NONE,
                            .numbers_fd = FD_NONE,
                            .copy_fds = { FD_NONE, FD_NONE },
                            .oom = OOM_WATCH_NONE };
        oom_watch_start("", &all->oom);
        r = outbox_init(all, reterr);
        if (r == 0)
                r = overhear_init(all, reterr);
        if (r == 0)
                *ret = all;
        else
                processes_free(all);
        return r;
}

void process_drop(Process *process) {
        process_forget_due(process);
        process_release(process, true);
        capture_clear(&process->output);
        strlist_clear(&process->argv);
        strlist_clear(&process->set_aside);
        strlist_clear(&process->still_aside);
        process->outcome.refusals = refused_free(process->outcome.refusals);
        free(process->overheard);
        free(process->command);
        free(process->cwd);
        free(process->params);
        free(process);
}

Processes *processes_free(Processes *all) {
        while (all && all->first) {
                Process *process = all->first;

                all->first = process->next;
                process_drop(process);
        }
        if (all) {
                (void)oom_watch_end(&all->oom);
                outbox_clear(all);
                fd_close(all->numbers_fd);
                fd_close(all->copy_fds[0]);
                fd_close(all->copy_fds[1]);
        }
        free(all);
        return NULL;
}

Process *processes_first(Processes *all) {
        return all->first;
}

unsigned processes_live(const Processes *all) {
        unsigned count = 0;

        for (const Process *p = all->first; p; p = p->next)
                count += !process_is_over(p);
        return count;
}

int process_find(Processes *all, const char *id, Process **ret, Error *reterr) {
        int r;

        for (Process *p = all->first; p; p = p->next)
                if (streq(p->id, id)) {
                        *ret = p;
                        return 0;
                }
        r = error_set(reterr, ERROR_NO_PROCESS, 0, "process \"%.32s\" does not exist", id);
        (void)error_cure(reterr, r,
                         "holt ps NAME lists the processes. It keeps the last %d that have ended.",
                         PROCESSES_ENDED_MAX);
        return -ENOENT;
}

/* Drops the oldest processes that have ended. The list has the newest first. */
void processes_make_room(Processes *all) {
        size_t kept = 0;
        unsigned ended = 0;

        list_each_safe(p, all->first) {
                ended += p->gone && p->settled;
                kept += p->output.streams[0].kept + p->output.streams[1].kept;
                if (p->gone && p->settled && process_is_swept(p) &&
                    (ended > PROCESSES_ENDED_MAX || kept > PROCESSES_KEPT_MAX) &&
                    (!process_has_output(p) || ended > PROCESSES_UNREAD_MAX)) {
                        (void)list_remove(&all->first, p);
                        all->events.dropped(all->events.data, p);
                        process_drop(p);
                }
        }
}

bool process_is_over(const Process *process) {
        return (process->gone || process->alone) && !process->delivers;
}

/* --- clients --- */

void processes_forget(Processes *all, RpcConnection *connection) {
        for (Process *p = all->first; p; p = p->next) {
                capture_unwatch(&p->output, connection);
                process_follow_output(p);
                if (p->owner != connection)
                        continue;
                p->owner = NULL;
                if (!p->settled)
                        process_kill(p);
        }
}

void processes_pump(Processes *all) {
        for (Process *p = all->first; p; p = p->next) {
                capture_pump(&p->output);
                process_follow_output(p);
        }
}
