/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/events.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/sys.h"
#include "base/time.h"
#include "files/receive.h"
#include "files/staged.h"
#include "inside/interpreter.h"
#include "process/report.h"
#include "keeper/acts.h"
#include "keeper/links.h"
#include "session/live.h"

enum {
        FLUSH_TIME = 200000, /* Longest time for the last replies to leave, in usec. */
        FLUSH_STEP = 1000,   /* Pause between checks whether they have left, in usec. */
        LOOK_TIME = 3000000, /* Pause between checks whether the session was removed, in usec. */
        REST_TIME = 1000000, /* Time without use until memory is given back, in usec. */
};

static void stop_soon(Keeper *keeper);

/* --- notifications --- */

static void keeper_on_answered(void *data, Process *process, int master_fd) {
        keeper_answer_started(data, process, master_fd);
        fd_close(master_fd);
}

/* Tells the connection that owns the process and thus its terminal, and those that watch it. */
static void keeper_on_stopped(void *data, Process *process, int signal) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        (void)data;
        json_write_object(&w, NULL);
        json_write_string(&w, "id", process->id);
        json_write_int(&w, "signal", signal);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return;
        if (process->owner)
                (void)rpc_notify(process->owner, "process.stopped", &w);
        capture_tell(&process->output, process->owner, "process.stopped", &w);
}

static void notify_end(Process *process) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        if (process_end_document(process, &w) == 0)
                capture_end(&process->output, "process.exited", &w);
}

/* Protected paths are checked after each command, rather than only at the end. The host's git may
 * run at any time, and a keeper that crashes makes no check at its end. */
static void keeper_on_settled(void *data, Process *process) {
        Keeper *keeper = data;

        keeper_used(keeper);
        keeper_touched(keeper, true);
        keeper_note_end(keeper, process);
        keeper_read_network(keeper);
        keeper_read_gateway(keeper);
        keeper_audit_denials(keeper, process);
        if (process->outcome.exit_code != 0 && process->started && !process->done)
                process->outcome.refusals = keeper_find_refusals(keeper, process, "", NULL,
                                                                 &process->outcome.symptoms);
        notify_end(process);
        keeper_sweep_behind(keeper, process);
        if (keeper->stopping && processes_live(keeper->processes) == 0)
                stop_soon(keeper);
        if (process->sweep_due)
                return;
        keeper_answer_settled(keeper);
        keeper_interpreters_swept(keeper, process);
}

/* From now on, the process's token allows no tool. */
static void keeper_on_gone(void *data, Process *process) {
        keeper_touched(data, !process->alone);
        process->grant = grant_end(process->grant);
        keeper_answer_settled(data);
}

/* The pid namespace ends with its init; keeper_on_sandbox_end() does the rest. */
static void keeper_on_stuck(void *data) {
        const Keeper *keeper = data;

        if (keeper->sandbox.pidfd >= 0)
                (void)sys_pidfd_send_signal(keeper->sandbox.pidfd, SIGKILL);
}

static void keeper_on_dropped(void *data, Process *process) {
        keeper_fail_dropped(data, process);
}

/* --- ending --- */

/* Whether clients still expect something. A client that learns that its command was killed asks for
 * its output next. */
static bool keeper_owes(const Keeper *keeper) {
        return rpc_server_owed(keeper->server) > keeper_waits_for_rest(keeper) ||
               (keeper->replaced && rpc_server_connections(keeper->server) > 0);
}

/* Waits a limited time for replies that are already on their way. */
static void keeper_on_stop(void *data) {
        Keeper *keeper = data;
        const uint64_t now = time_now_usec();

        if (keeper->ending && (now < keeper->flush_until || keeper_sweep_goes_on(keeper)) &&
            keeper_owes(keeper))
                loop_timer_set(keeper->stop_timer, now + FLUSH_STEP);
        else
                loop_stop(keeper->loop);
}

/* Later clients wait for the next keeper. */
void keeper_deafen(Keeper *keeper) {
        rpc_server_deafen(keeper->server);
        (void)unlinkat(keeper->plan.state.fd, KEEPER_SOCKET, 0);
}

static void stop_soon(Keeper *keeper) {
        /* Only once: data that init left stays readable, so this function is called again and
         * again. */
        if (keeper->ending)
                return;
        keeper->stopping = keeper->ending = true;
        keeper_end_within(KEEPER_END_TIME);
        keeper_deafen(keeper);
        keeper->flush_until = time_now_usec() + FLUSH_TIME;
        loop_timer_set(keeper->stop_timer, time_now_usec() + FLUSH_STEP);
}

/* The second request ends the keeper at once. */
static void keeper_on_told_to_end(Keeper *keeper) {
        if (keeper->stopping)
                stop_soon(keeper);
        else
                keeper_stop(keeper);
}

void keeper_stop(Keeper *keeper) {
        if (keeper->stopping)
                return;
        keeper_end_within(keeper->plan.kill_after + KEEPER_END_TIME);
        for (Process *p = processes_first(keeper->processes); p; p = p->next)
                if (!process_is_over(p))
                        process_terminate(p);
        if (processes_live(keeper->processes) == 0)
                return stop_soon(keeper);
        keeper->stopping = true;
        loop_timer_set(keeper->stop_timer, time_now_usec() + keeper->plan.kill_after + FLUSH_TIME);
}

static void keeper_on_idle(void *data) {
        Keeper *keeper = data;
        uint64_t now = time_now_usec();

        if (rpc_server_connections(keeper->server) > 0 || processes_live(keeper->processes) > 0 ||
            processes_have_output(keeper->processes) || works_busy(keeper->works) ||
            receives_busy(keeper->receives) || keeper_links_hold(keeper))
                keeper->used_at = now;
        if (now - keeper->used_at >= keeper->settings.idle)
                return keeper_stop(keeper);
        loop_timer_set(keeper->idle_timer, keeper->used_at + keeper->settings.idle);
}

/* Without its directory a session cannot be used or stopped by its name. */
static void keeper_on_look(void *data) {
        Keeper *keeper = data;
        struct stat st;

        if (fstat(keeper->lock_fd, &st) == 0 && st.st_nlink == 0)
                return keeper_stop(keeper);
        loop_timer_set(keeper->look_timer, time_now_usec() + LOOK_TIME);
}

/* Runs a second after the last use. */
static void keeper_on_rest(void *data) {
        Keeper *keeper = data;
        const uint64_t now = time_now_usec();

        if (now - keeper->used_at < REST_TIME)
                loop_timer_set(keeper->rest_timer, keeper->used_at + REST_TIME);
        else
                keeper_rest(keeper);
}

void keeper_used(Keeper *keeper) {
        keeper->used_at = time_now_usec();
        loop_timer_set(keeper->rest_timer, keeper->used_at + REST_TIME);
}

static void keeper_on_sandbox_end(void *data, uint32_t events) {
        Keeper *keeper = data;
        Error error;

        (void)events;
        (void)processes_listen(keeper->processes);
        /* Clients of these processes get results, with the output and the cause. */
        if (keeper->replaced)
                processes_settle(keeper->processes);
        processes_end_told(keeper->processes);
        /* The sweep comes before any reply, because a client that learns of the end may use git at
         * once. */
        keeper_sweep(keeper);
        keeper_answer_settled(keeper);
        processes_give_up(keeper->processes);
        if (keeper->replaced)
                (void)error_set(&error, ERROR_SETUP, 0,
                                "the session's sandbox was stopped: %s, which the policy protects "
                                "or hides, was replaced or created on the host",
                                keeper->replaced);
        else
                (void)error_set(&error, ERROR_SETUP, 0, "the session's sandbox has ended");
        (void)error_cure(&error, 0, "Repeat the request; holt then starts the session again.");
        keeper_fail_waiters(keeper, &error);
        keeper->sandbox.pidfd = fd_close(keeper->sandbox.pidfd);
        stop_soon(keeper);
}

/* --- events --- */

static void keeper_on_control(void *data, uint32_t events) {
        Keeper *keeper = data;

        (void)events;
        /* Init has gone, and the sandbox ends soon, with its last process. The socket stays until
         * the sweep after that: otherwise a client would learn of the end before the sweep. */
        if (processes_listen(keeper->processes) < 0)
                keeper->lost = true;
        if (keeper->stopping && processes_live(keeper->processes) == 0)
                stop_soon(keeper);
}

static void keeper_on_listener(void *data, uint32_t events) {
        Keeper *keeper = data;

        if (events & EPOLLIN)
                (void)denials_answer(&keeper->denials, keeper->sandbox.listener_fd,
                                     keeper->plan.exit_tracer ? &keeper->sandbox.tracer : NULL);
}

static void keeper_on_signal(void *data, uint32_t events) {
        Keeper *keeper = data;
        struct signalfd_siginfo info;

        (void)events;
        while (read(keeper->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
                if (info.ssi_signo == SIGINT || info.ssi_signo == SIGHUP)
                        keeper_on_told_to_end(keeper);
                else if (info.ssi_signo == WATCH_SIGNAL)
                        keeper_on_change(keeper);
}

/* The session ends with its owner; the process that removes it waits for the lock. */
static void keeper_on_owner_end(void *data, uint32_t events) {
        Keeper *keeper = data;

        (void)events;
        keeper->owner_watch = loop_unwatch(keeper->owner_watch);
        keeper_stop(keeper);
}

static void keeper_on_connection_end(RpcConnection *connection, void *data) {
        Keeper *keeper = data;

        keeper_used(keeper);
        keeper_leave_questions(keeper, connection);
        processes_forget(keeper->processes, connection);
        tools_forget(keeper->tools, connection);
        acts_forget(keeper->acts, connection);
        staged_forget(keeper->staged, connection);
}

static void keeper_on_room(RpcConnection *connection, void *data) {
        Keeper *keeper = data;

        keeper_answer_settled(keeper);
        works_pump(keeper->works);
        interpreters_pump(keeper->interpreters);
        interpreters_pump(keeper->shells);
        processes_pump(keeper->processes);
        tools_pump(keeper->tools, connection);
}

/* --- events of its interpreters (inside/interpreter.h) --- */

void keeper_interpreters_swept(const Keeper *keeper, Process *process) {
        interpreter_swept(keeper->interpreters, process);
        interpreter_swept(keeper->shells, process);
}

static void keeper_on_run(void *data) {
        keeper_used(data);
}

static int keeper_note_run(void *data, const StoreHistory *row) {
        bool *ret_found = data;

        (void)row;
        *ret_found = true;
        return 0;
}

/* If the history cannot be read, the run itself reports that. */
static bool keeper_on_has_run(void *data, const char *method) {
        const Keeper *keeper = data;
        bool found = false;
        Error ignored;

        (void)store_history_list(keeper->store, 0, method, 1, keeper_note_run, &found, &ignored);
        return found;
}

static void keeper_on_run_end(void *data, Process *process) {
        keeper_sweep_behind(data, process);
}

static void keeper_on_run_timeout(void *data, const char *id) {
        keeper_audit_end(data, id, CAUSE_TIMEOUT);
}

static const char *keeper_on_run_note(void *data, const char *method, const char *params,
                                      const char *result, uint64_t started_ms) {
        return keeper_note_call(data, method, params, result, started_ms);
}

static void keeper_on_write_denials(void *data, const Process *process, uint64_t timeout,
                                    const char *complaint, JsonWriter *w) {
        Symptoms symptoms = { 0 };
        Refusals *refusals = complaint ? keeper_find_refusals(data, process, complaint, NULL,
                                                              &symptoms)
                                       : NULL;

        keeper_write_denials(data, process, timeout, refusals, &symptoms, w);
        refused_free(refusals);
}

/* --- parts that report events --- */

static int keeper_watch_fd(Keeper *keeper, int fd, LoopWatchFn fn, Error *reterr) {
        LoopWatch *ignored;

        return fd < 0 ? 0 : loop_watch(keeper->loop, fd, EPOLLIN, fn, keeper, &ignored, reterr);
}

static int keeper_watch_owner(Keeper *keeper, Error *reterr) {
        if (keeper->owner_fd < 0)
                return 0;
        return loop_watch(keeper->loop, keeper->owner_fd, 0, keeper_on_owner_end, keeper,
                          &keeper->owner_watch, reterr);
}

static int keeper_watch_fds(Keeper *keeper, Error *reterr) {
        const struct {
                int fd;
                LoopWatchFn fn;
        } watches[] = {
                { keeper->signal_fd, keeper_on_signal },
                { keeper->sandbox.control_fd, keeper_on_control },
                { keeper->sandbox.listener_fd, keeper_on_listener },
                { keeper->sandbox.pidfd, keeper_on_sandbox_end },
        };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(watches); i++)
                r = keeper_watch_fd(keeper, watches[i].fd, watches[i].fn, reterr);
        return r == 0 ? keeper_watch_owner(keeper, reterr) : r;
}

static int keeper_make_timers(Keeper *keeper, Error *reterr) {
        const struct {
                LoopTimer **timer;
                void (*fn)(void *data);
        } timers[] = {
                { &keeper->stop_timer, keeper_on_stop },
                { &keeper->idle_timer, keeper_on_idle },
                { &keeper->rest_timer, keeper_on_rest },
                { &keeper->look_timer, keeper_on_look },
                { &keeper->route_timer, keeper_on_route_late },
        };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(timers); i++)
                r = loop_timer_new(keeper->loop, timers[i].fn, keeper, timers[i].timer, reterr);
        return r;
}

static int (*const watch_steps[])(Keeper *keeper, Error *reterr) = {
        keeper_watch_fds, keeper_make_timers,  keeper_waiters_new,
        keeper_notes_new, keeper_watching_new, keeper_sweeper_new,
};

int keeper_watch_all(Keeper *keeper, Error *reterr) {
        int r;

        (void)sigfillset(&keeper->signals);
        (void)sigdelset(&keeper->signals, SIGALRM);
        (void)sigdelset(&keeper->signals, SIGTERM);
        keeper->signal_fd = signalfd(-1, &keeper->signals, SFD_CLOEXEC | SFD_NONBLOCK);
        keeper_take_terminate(keeper->plan.kill_after + KEEPER_END_TIME);
        r = RUN_STEPS(watch_steps, keeper, reterr);
        if (r < 0)
                return r;
        keeper_used(keeper);
        keeper_on_look(keeper);
        if (keeper->settings.idle)
                loop_timer_set(keeper->idle_timer, time_now_usec() + keeper->settings.idle);
        return 0;
}

int keeper_make_processes(Keeper *keeper, Error *reterr) {
        const ProcessEvents events = { keeper_on_answered,
                                       keeper_on_stopped,
                                       keeper_on_settled,
                                       keeper_on_gone,
                                       keeper_on_stuck,
                                       keeper_on_dropped,
                                       keeper };

        int fd, r = processes_new(keeper->loop, &keeper->launch, &keeper->sandbox, &events,
                                  &keeper->processes, reterr);

        if (r < 0)
                return r;
        /* On a full disk, the file may be missing. Numbers then begin with 1 whenever the session
         * starts. */
        fd = openat(keeper->plan.state.fd, PROCESS_NUMBER_FILE,
                    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        processes_continue_numbers(keeper->processes, fd);
        return 0;
}

int keeper_make_interpreters(Keeper *keeper, Error *reterr) {
        InterpreterSession session = { .kind = &interpreter_python,
                                       .loop = keeper->loop,
                                       .processes = keeper->processes,
                                       .plan = &keeper->plan,
                                       .program = keeper->settings.policy.python,
                                       .denials = &keeper->denials,
                                       .network = &keeper->sandbox.network,
                                       .gateway = &keeper->sandbox.gateway,
                                       .data = keeper,
                                       .on_run = keeper_on_run,
                                       .has_run = keeper_on_has_run,
                                       .on_run_end = keeper_on_run_end,
                                       .on_timeout = keeper_on_run_timeout,
                                       .note = keeper_on_run_note,
                                       .write_denials = keeper_on_write_denials };

        int r = interpreters_new(&session, &keeper->interpreters, reterr);

        if (r < 0)
                return r;
        session.kind = &interpreter_shell;
        return interpreters_new(&session, &keeper->shells, reterr);
}

int keeper_make_server(Keeper *keeper, Error *reterr) {
        int fd, r = rpc_server_new(keeper->loop, keeper->methods, keeper->methods_count, keeper,
                                   &keeper->server, reterr);

        if (r < 0)
                return r;
        rpc_server_on_end(keeper->server, keeper_on_connection_end);
        rpc_server_on_room(keeper->server, keeper_on_room);
        rpc_server_on_answer(keeper->server, keeper_note_answer);
        rpc_server_tell_commands(keeper->server);
        r = session_listen(keeper->plan.state.fd, &fd, reterr);
        return r < 0 ? r : rpc_server_listen(keeper->server, fd, getuid(), RPC_PEERS_PROVE, reterr);
}
