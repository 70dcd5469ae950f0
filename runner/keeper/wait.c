/* SPDX-License-Identifier: Apache-2.0 */
/* Calls with late replies: when a command has started or ended, or when the session is at rest.
 *
 * Theory of operation. The output of a command is kept with its process. A reply that includes
 * output is a copy, several times as long. No reply is made for a client that leaves too much
 * unread (rpc_call_has_room()): the call waits until the client reads again. Meanwhile the process,
 * like any that has ended, may be freed to make room for later ones. The call then fails with an
 * error that says so. Replies also share the loop: after RPC_TURN_TIME the others wait for the next
 * turn, so that short requests of other clients come first. */
#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/time.h"
#include "keeper/keeper.h"

/* A call that waits for a process. */
typedef struct Waiter {
        struct Waiter *next;
        Keeper *keeper;
        RpcCall *call;
        Process *process; /* NULL for WAIT_REST. */
        WaitFor what;
        RpcLast *last; /* The reply, kept until the server has gone. */
} Waiter;

struct Waiters {
        Waiter *first;
        LoopTimer *timer;
};

static void drop_waiter(Waiter *waiter) {
        (void)list_remove(&waiter->keeper->waiters->first, waiter);
        free(waiter);
}

/* The client has gone before the reply told it the id. Nobody could end the command, so it is ended
 * here. */
static void waiter_on_call_end(RpcCall *call, void *data) {
        Waiter *waiter = data;
        Process *process = waiter->what == WAIT_START ? waiter->process : NULL;

        (void)call;
        drop_waiter(waiter);
        if (!process || process->answered)
                return;
        process->output.awaits = false;
        process_follow_output(process);
        process_kill(process);
}

static bool waiter_has_ended(const Waiter *waiter) {
        return waiter->process && waiter->what != WAIT_START && waiter->process->settled &&
               (waiter->what != WAIT_GONE || process_is_over(waiter->process));
}

/* A process counts as settled once its check of protected paths has ended, because the reply has
 * the findings. */
static bool is_settled(const Waiter *waiter) {
        return waiter_has_ended(waiter) && process_is_swept(waiter->process);
}

/* --- answers --- */

static void answer_end(const Waiter *waiter) {
        if (waiter->process->outcome.cause == CAUSE_ERROR) {
                rpc_fail(waiter->call, &waiter->process->error);
                return;
        }
        keeper_write_result(waiter->keeper, waiter->process, waiter->what,
                            rpc_result(waiter->call));
        rpc_reply(waiter->call);
}

static void answer_start(const Waiter *waiter, int master_fd) {
        JsonWriter *w;

        if (waiter->process->outcome.cause == CAUSE_ERROR) {
                rpc_fail(waiter->call, &waiter->process->error);
                return;
        }
        w = rpc_result(waiter->call);
        json_write_string(w, "id", waiter->process->id);
        json_write_int(w, "pid", waiter->process->pid);
        json_write_uint_or_null(w, "timeout_us", waiter->process->timeout);
        if (waiter->process->settled) {
                json_write_object(w, "ended");
                keeper_write_result(waiter->keeper, waiter->process, WAIT_END, w);
                json_write_end(w);
        }
        rpc_reply_fds(waiter->call, &master_fd, master_fd >= 0);
}

/* The client learns the id by the reply, so the output follows it. If it cannot be watched, the
 * client still gets what is kept, by process.wait. */
static void begin_output(Process *process, RpcConnection *connection) {
        if (!process->output.awaits)
                return;
        (void)capture_watch_all(&process->output, connection);
        process_follow_output(process);
}

static int add_waiter(Keeper *keeper, RpcCall *call, Process *process, WaitFor what,
                      Error *reterr) {
        Waiter *waiter = malloc(sizeof(*waiter));

        if (!waiter)
                return error_oom(reterr);
        *waiter = (Waiter){ .keeper = keeper, .call = call, .process = process, .what = what };
        list_push(&keeper->waiters->first, waiter);
        rpc_call_on_end(call, waiter_on_call_end, waiter);
        return 0;
}

int keeper_wait(Keeper *keeper, RpcCall *call, Process *process, WaitFor what, Error *reterr) {
        const Waiter now = { .keeper = keeper, .call = call, .process = process, .what = what };

        if (!is_settled(&now) || !rpc_call_has_room(call))
                return add_waiter(keeper, call, process, what, reterr);
        answer_end(&now);
        return 0;
}

int keeper_wait_for_rest(Keeper *keeper, RpcCall *call, Error *reterr) {
        return add_waiter(keeper, call, NULL, WAIT_REST, reterr);
}

size_t keeper_waits_for_rest(const Keeper *keeper) {
        size_t count = 0;

        for (const Waiter *waiter = keeper->waiters->first; waiter; waiter = waiter->next)
                count += waiter->what == WAIT_REST;
        return count;
}

/* --- replying in time --- */

void keeper_answer_started(Keeper *keeper, const Process *process, int master_fd) {
        RpcConnection *connection;

        list_each_safe(waiter, keeper->waiters->first) {
                if (waiter->process != process || waiter->what != WAIT_START)
                        continue;
                connection = rpc_call_connection(waiter->call);
                answer_start(waiter, master_fd);
                begin_output(waiter->process, connection);
                drop_waiter(waiter);
        }
}

/* Returns whether calls remain because their clients do not read. A call that only waits for the
 * next turn does not count. */
static bool answer_some(Keeper *keeper) {
        const uint64_t end = time_now_usec() + RPC_TURN_TIME;
        bool left = false;

        list_each_safe(waiter, keeper->waiters->first) {
                if (!is_settled(waiter))
                        continue;
                if (!rpc_call_has_room(waiter->call)) {
                        left = true;
                        continue;
                }
                if (time_now_usec() >= end) {
                        loop_timer_set(keeper->waiters->timer, time_now_usec());
                        return false;
                }
                answer_end(waiter);
                drop_waiter(waiter);
        }
        return left;
}

/* The output of a client that has stopped reading gets the same room as output without a client.
 * The timer frees such output, rather than this function, whose caller still uses a process that
 * has ended. */
void keeper_answer_settled(Keeper *keeper) {
        if (answer_some(keeper))
                loop_timer_set(keeper->waiters->timer, time_now_usec());
}

static void waiters_on_time(void *data) {
        Keeper *keeper = data;

        if (answer_some(keeper))
                processes_make_room(keeper->processes);
}

int keeper_waiters_new(Keeper *keeper, Error *reterr) {
        keeper->waiters = calloc(1, sizeof(*keeper->waiters));
        return keeper->waiters ? loop_timer_new(keeper->loop, waiters_on_time, keeper,
                                                &keeper->waiters->timer, reterr)
                               : error_oom(reterr);
}

/* --- failing --- */

void keeper_fail_dropped(Keeper *keeper, const Process *process) {
        const Outcome *out = &process->outcome;
        Error error;

        (void)error_set(&error, ERROR_LIMIT, EBUSY,
                        "%s has ended (%s, exit code %d), but its output was removed to make room "
                        "for later commands, because the client left more than %d MiB unread",
                        process->id, cause_name(out->cause), out->exit_code, RPC_QUEUE_SOFT >> 20);
        (void)error_cure(&error, 0,
                         "Read replies as they arrive. The history says how the command ended.");
        list_each_safe(waiter, keeper->waiters->first) {
                if (waiter->process != process)
                        continue;
                rpc_fail(waiter->call, &error);
                drop_waiter(waiter);
        }
}

void keeper_fail_waiters(Keeper *keeper, const Error *error) {
        list_each_safe(waiter, keeper->waiters->first) {
                if (waiter->what == WAIT_REST || waiter_has_ended(waiter))
                        continue;
                rpc_fail(waiter->call, error);
                drop_waiter(waiter);
        }
}

void keeper_take_last_answers(Keeper *keeper) {
        for (Waiter *waiter = keeper->waiters->first; waiter; waiter = waiter->next)
                if (waiter->what == WAIT_REST)
                        waiter->last = rpc_reply_last(waiter->call);
}

void keeper_send_last_answers(Keeper *keeper) {
        while (keeper->waiters->first) {
                Waiter *waiter = keeper->waiters->first;

                if (waiter->last)
                        keeper_due_write(keeper, rpc_last_result(waiter->last));
                waiter->last = rpc_last_send(waiter->last);
                drop_waiter(waiter);
        }
        (void)loop_timer_free(keeper->waiters->timer);
        free(keeper->waiters);
        keeper->waiters = NULL;
}
