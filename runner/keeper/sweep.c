/* SPDX-License-Identifier: Apache-2.0 */
/* Checks protected paths after each command (guards/guard.h).
 *
 * Theory of operation. Commands inside determine how long a check takes, because git's directory
 * may hold as many files as they like. So a check runs on a thread, and the loop serves other
 * clients meanwhile. Most checks are short, so the loop waits a moment for each. Commands that end
 * during a check share the next one, because the running check may have passed their files already.
 * A command, or a run of an interpreter, is replied to after its check, with the findings. */
#include <stdio.h>
#include <stdlib.h>

#include "base/threads.h"
#include "base/time.h"
#include "guards/guard.h"
#include "keeper/events.h"
#include "keeper/keeper.h"

enum {
        MOMENT = 2000,        /* usec that the loop waits for a check that it has started. */
        STACK_SIZE = 1 << 20, /* In bytes. */
};

struct Sweeper {
        Keeper *keeper;
        Threads *threads;
        Thread thread;
        LoopTimer *timer;
        bool runs;
        bool swept;       /* A check began after the last change from inside or by a client. */
        StrList moved;    /* Paths that the running check has set aside. */
        StrList restored; /* Paths that have their earlier files again. */
        bool dead;        /* Nothing runs inside any more. */
        bool done;        /* A check since then has set everything aside. */
        char failure[PROCESS_UNGUARDED_MAX];
};

/* Starts a check from the next turn of the loop on. */
static void keeper_sweep_soon(Keeper *keeper) {
        if (plan_has_guards(&keeper->plan))
                loop_timer_set(keeper->sweeper->timer, time_now_usec());
}

/* Whether a former check has seen the last change from inside. Then a new file is the host's own:
 * it may be git's next change, after holt has restored the config. */
static bool sweeper_is_done(const Sweeper *sweeper) {
        return sweeper->dead && sweeper->done && sweeper->swept;
}

/* Runs on the thread, or on the loop if no thread can be made. */
static void sweeper_look(void *data) {
        Sweeper *sweeper = data;
        const Keeper *keeper = sweeper->keeper;
        char sentence[ERROR_SENTENCE_MAX];
        Error error;

        sweeper->failure[0] = '\0';
        if (guard_sweep(&keeper->plan, keeper->launch.workspace_fd, &sweeper->moved,
                        sweeper->dead ? &sweeper->restored : NULL, &error) < 0)
                (void)snprintf(sweeper->failure, sizeof(sweeper->failure), "%s",
                               error_sentence(&error, sentence));
}

static void sweeper_tell(const Sweeper *sweeper, Process *process) {
        (void)snprintf(process->unguarded, sizeof(process->unguarded), "%s",
                       sweeper->failure[0] ? sweeper->failure : keeper_due_missed(sweeper->keeper));
        for (size_t i = 0; i < sweeper->moved.count; i++)
                (void)strlist_add(&process->set_aside, sweeper->moved.items[i]);
        keeper_aside_tell(sweeper->keeper, process);
}

static void sweeper_note(Sweeper *sweeper) {
        Keeper *keeper = sweeper->keeper;

        for (size_t i = 0; i < sweeper->moved.count; i++) {
                keeper_audit_guard(keeper, "set_aside", sweeper->moved.items[i]);
                keeper_aside_add(keeper, sweeper->moved.items[i]);
                if (keeper->stopping)
                        (void)strlist_add(&keeper->set_aside, sweeper->moved.items[i]);
        }
        for (size_t i = 0; i < sweeper->restored.count; i++)
                keeper_audit_guard(keeper, "restored", sweeper->restored.items[i]);
        if (sweeper->failure[0] && !streq(sweeper->failure, keeper->unguarded))
                keeper_audit_guard(keeper, "failed", sweeper->failure);
        (void)snprintf(keeper->unguarded, sizeof(keeper->unguarded), "%s", sweeper->failure);
        sweeper->swept &= !sweeper->failure[0];
}

static Process *sweeper_first(const Sweeper *sweeper) {
        return sweeper->keeper->processes ? processes_first(sweeper->keeper->processes) : NULL;
}

/* Marks the processes that this check is for. */
static void sweeper_begin(Sweeper *sweeper) {
        strlist_clear(&sweeper->moved);
        strlist_clear(&sweeper->restored);
        sweeper->swept = true;
        for (Process *p = sweeper_first(sweeper); p; p = p->next) {
                p->sweep_runs |= p->sweep_due;
                p->sweep_due = false;
        }
}

/* Ends a check. interpreter_swept() may end other processes, but frees none. */
static void sweeper_finish(void *data) {
        Sweeper *sweeper = data;
        Keeper *keeper = sweeper->keeper;
        bool more = false, told = false;

        sweeper->runs = false;
        sweeper_note(sweeper);
        for (Process *p = sweeper_first(sweeper); p; p = p->next) {
                if (p->sweep_runs)
                        sweeper_tell(sweeper, p);
                told |= p->sweep_runs && !sweeper->failure[0];
                p->sweep_runs = false;
                more |= p->sweep_due;
        }
        strlist_clear(&sweeper->moved);
        if (told)
                keeper_due_told(keeper);
        for (Process *p = sweeper_first(sweeper); p; p = p->next)
                if (process_is_swept(p))
                        keeper_interpreters_swept(keeper, p);
        if (more)
                keeper_sweep_soon(keeper);
        keeper_answer_settled(keeper);
        keeper_look_quiet(keeper);
}

static void sweeper_look_here(Sweeper *sweeper) {
        const bool done = sweeper_is_done(sweeper);

        sweeper_begin(sweeper);
        if (!done)
                sweeper_look(sweeper);
        sweeper->done = sweeper->dead && !sweeper->failure[0];
        sweeper_finish(sweeper);
}

static void sweeper_on_time(void *data) {
        keeper_sweep_start(data);
}

/* --- for the keeper --- */

int keeper_sweeper_new(Keeper *keeper, Error *reterr) {
        Sweeper *sweeper = calloc(1, sizeof(*sweeper));
        int r;

        if (!sweeper)
                return error_oom(reterr);
        keeper->sweeper = sweeper;
        sweeper->keeper = keeper;
        sweeper->swept = true;
        sweeper->thread = (Thread){ .run = sweeper_look,
                                    .finish = sweeper_finish,
                                    .data = sweeper,
                                    .stack_size = STACK_SIZE };
        r = threads_new(keeper->loop, &sweeper->threads, reterr);
        return r == 0 ? loop_timer_new(keeper->loop, sweeper_on_time, keeper, &sweeper->timer,
                                       reterr)
                      : r;
}

void keeper_sweeper_free(Keeper *keeper) {
        if (!keeper->sweeper)
                return;
        keeper_sweep_wait(keeper);
        (void)threads_free(keeper->sweeper->threads);
        (void)loop_timer_free(keeper->sweeper->timer);
        strlist_clear(&keeper->sweeper->moved);
        strlist_clear(&keeper->sweeper->restored);
        free(keeper->sweeper);
        keeper->sweeper = NULL;
}

void keeper_sweep_wait(Keeper *keeper) {
        if (keeper->sweeper && keeper->sweeper->runs)
                (void)thread_wait(&keeper->sweeper->thread, THREAD_FOREVER);
}

bool keeper_sweep_goes_on(const Keeper *keeper) {
        return keeper->sweeper && keeper->sweeper->runs;
}

void keeper_sweep_needed(Keeper *keeper) {
        if (keeper->sweeper && plan_has_guards(&keeper->plan))
                keeper->sweeper->swept = false;
}

bool keeper_is_swept(const Keeper *keeper) {
        return keeper->sweeper && keeper->sweeper->swept;
}

void keeper_sweep(Keeper *keeper) {
        keeper_sweep_wait(keeper);
        if (!keeper->sweeper)
                return;
        keeper->sweeper->dead = true;
        sweeper_look_here(keeper->sweeper);
}

/* Once the sandbox has ended, the keeper ends too. It serves nobody any more, so this check needs
 * no thread. */
void keeper_sweep_start(Keeper *keeper) {
        Sweeper *sweeper = keeper->sweeper;

        if (sweeper->runs)
                return;
        if (keeper->sandbox.pidfd < 0)
                return keeper_sweep(keeper);
        /* The sandbox is being killed. The check at its end can also restore files. */
        if (keeper->replaced)
                return;
        sweeper_begin(sweeper);
        sweeper->runs = thread_start(sweeper->threads, &sweeper->thread) == 0;
        if (sweeper->runs) {
                (void)thread_wait(&sweeper->thread, time_now_usec() + MOMENT);
        } else {
                sweeper_look(sweeper);
                sweeper_finish(sweeper);
        }
}

void keeper_sweep_behind(Keeper *keeper, Process *process) {
        keeper_check_ended(keeper, process);
        process->sweep_due = plan_has_guards(&keeper->plan);
        keeper_sweep_soon(keeper);
}
