/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/keeper.h"

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

#include "base/paths.h"
#include "base/sys.h"
#include "base/time.h"
#include "guards/watch.h"
#include "keeper/acts.h"
#include "inside/bridge.h"
#include "inside/inside.h"
#include "inside/interpreter.h"
#include "keeper/methods.h"
#include "files/receive.h"
#include "session/sources.h"
#include "files/staged.h"
#include "inside/tools.h"
#include "files/staged.h"
#include "store/unwritten.h"
#include "base/own-limits.h"

enum {
        FLUSH_TIME = 200000, /* usec for the last answers to leave, at most */
        FLUSH_STEP = 1000,   /* ... until it is looked whether they have */
        LOOK_TIME = 3000000, /* usec between two looks whether the session was removed */
        REST_TIME = 1000000, /* usec without use until memory is given back */
};

/* --- what clients are told --- */

static void on_answered(void *data, Process *process, int master_fd) {
        keeper_answer_started(data, process, master_fd);
        fd_close(master_fd);
}

/* To whoever owns it, and so has its terminal, and to those who watch. */
static void on_stopped(void *data, Process *process, int signal) {
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

        json_write_object(&w, NULL);
        json_write_string(&w, "id", process->id);
        json_write_string(&w, "cause", cause_name(process->outcome.cause));
        json_write_int(&w, "exit_code", process->outcome.exit_code);
        json_write_end(&w);
        if (json_write_finish(&w) == 0)
                capture_end(&process->output, "process.exited", &w);
}

/* Protected paths are looked at after each command, and not only at the end: the host's git may
 * come by at any time, and a crash of the keeper has no end. */
static void on_settled(void *data, Process *process) {
        Keeper *keeper = data;

        keeper_used(keeper);
        keeper_touched(keeper, true);
        keeper_note_end(keeper, process);
        keeper_audit_denials(keeper, process);
        notify_end(process);
        keeper_sweep_behind(keeper, process);
        if (process->sweep_due)
                return;
        keeper_answer_settled(keeper);
        interpreter_swept(keeper->interpreters, process);
}

/* Its token is worth nothing any more. */
static void on_gone(void *data, Process *process) {
        keeper_touched(data, !process->alone);
        process->grant = grant_end(process->grant);
        keeper_answer_settled(data);
}

/* The pid namespace ends with its init, and on_sandbox_end() does the rest. */
static void on_stuck(void *data) {
        const Keeper *keeper = data;

        if (keeper->sandbox.pidfd >= 0)
                (void)sys_pidfd_send_signal(keeper->sandbox.pidfd, SIGKILL);
}

static void on_dropped(void *data, Process *process) {
        keeper_fail_dropped(data, process);
}

/* --- ending --- */

/* Whether clients still have something to get. A client that has just been told that its command
 * was killed asks for its output next. */
static bool keeper_owes(const Keeper *keeper) {
        return rpc_server_owed(keeper->server) > keeper_waits_for_rest(keeper) ||
               (keeper->replaced && rpc_server_connections(keeper->server) > 0);
}

/* The answers that are on their way still leave. */
static void on_stop(void *data) {
        Keeper *keeper = data;
        const uint64_t now = time_now_usec();

        if (keeper->ending && (now < keeper->flush_until || keeper_sweep_goes_on(keeper)) &&
            keeper_owes(keeper))
                loop_timer_set(keeper->stop_timer, now + FLUSH_STEP);
        else
                loop_stop(keeper->loop);
}

/* Who comes from now on waits for the next keeper. */
void keeper_deafen(Keeper *keeper) {
        rpc_server_deafen(keeper->server);
        (void)unlinkat(keeper->plan.state.fd, KEEPER_SOCKET, 0);
}

static void stop_soon(Keeper *keeper) {
        /* Once: what init has left behind stays readable, and this is asked again and again. */
        if (keeper->ending)
                return;
        keeper->stopping = keeper->ending = true;
        keeper_end_within(KEEPER_END_TIME);
        keeper_deafen(keeper);
        keeper->flush_until = time_now_usec() + FLUSH_TIME;
        loop_timer_set(keeper->stop_timer, time_now_usec() + FLUSH_STEP);
}

/* At the second time without patience. */
static void on_told_to_end(Keeper *keeper) {
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
                if (!p->gone)
                        process_terminate(p);
        if (processes_live(keeper->processes) == 0)
                return stop_soon(keeper);
        keeper->stopping = true;
        loop_timer_set(keeper->stop_timer, time_now_usec() + keeper->plan.kill_after + FLUSH_TIME);
}

static void on_idle(void *data) {
        Keeper *keeper = data;
        uint64_t now = time_now_usec();

        if (rpc_server_connections(keeper->server) > 0 || processes_live(keeper->processes) > 0 ||
            works_busy(keeper->works) || receives_busy(keeper->receives))
                keeper->used_at = now;
        if (now - keeper->used_at >= keeper->settings.idle)
                return keeper_stop(keeper);
        loop_timer_set(keeper->idle_timer, keeper->used_at + keeper->settings.idle);
}

/* Without its directory a session can't be used or stopped by its name. */
static void on_look(void *data) {
        Keeper *keeper = data;
        struct stat st;

        if (fstat(keeper->lock_fd, &st) == 0 && st.st_nlink == 0)
                return keeper_stop(keeper);
        loop_timer_set(keeper->look_timer, time_now_usec() + LOOK_TIME);
}

/* A second after it was used last. */
static void on_rest(void *data) {
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

static void on_sandbox_end(void *data, uint32_t events) {
        Keeper *keeper = data;
        Error error;

        (void)events;
        (void)processes_listen(keeper->processes);
        /* The clients of these get results, with the output and the cause. */
        if (keeper->replaced)
                processes_settle(keeper->processes);
        processes_end_told(keeper->processes);
        /* Before anybody is answered: a client that learns of the end may use git at once. */
        keeper_sweep(keeper);
        keeper_answer_settled(keeper);
        processes_give_up(keeper->processes);
        if (keeper->replaced)
                (void)error_set(&error, ERROR_SETUP, 0,
                                "the sandbox of the session was stopped: %s, which the policy "
                                "protects or hides, was replaced on the host, or made where there "
                                "was none",
                                keeper->replaced);
        else
                (void)error_set(&error, ERROR_SETUP, 0, "the sandbox of the session has ended");
        (void)error_cure(&error, 0, "Try again: the next use starts it anew.");
        keeper_fail_waiters(keeper, &error);
        keeper->sandbox.pidfd = fd_close(keeper->sandbox.pidfd);
        stop_soon(keeper);
}

/* --- events --- */

static void on_control(void *data, uint32_t events) {
        Keeper *keeper = data;

        (void)events;
        /* Init is gone; the sandbox is soon, when the last of it has ended. Until the sweep after
         * that the socket stays: without it a client hears of the end before. */
        if (processes_listen(keeper->processes) < 0)
                keeper->lost = true;
        if (keeper->stopping && processes_live(keeper->processes) == 0)
                stop_soon(keeper);
}

static void on_listener(void *data, uint32_t events) {
        Keeper *keeper = data;

        if (events & EPOLLIN)
                (void)denials_answer(&keeper->denials, keeper->sandbox.listener_fd);
}

static void on_signal(void *data, uint32_t events) {
        Keeper *keeper = data;
        struct signalfd_siginfo info;

        (void)events;
        while (read(keeper->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
                if (info.ssi_signo == SIGINT || info.ssi_signo == SIGHUP)
                        on_told_to_end(keeper);
                else if (info.ssi_signo == WATCH_SIGNAL)
                        keeper_on_change(keeper);
}

/* The session goes with its owner; who takes it away waits for the lock. */
static void on_owner_end(void *data, uint32_t events) {
        Keeper *keeper = data;

        (void)events;
        keeper->owner_watch = loop_unwatch(keeper->owner_watch);
        keeper_stop(keeper);
}

static void on_connection_end(RpcConnection *connection, void *data) {
        Keeper *keeper = data;

        keeper_used(keeper);
        processes_forget(keeper->processes, connection);
        tools_forget(keeper->tools, connection);
        acts_forget(keeper->acts, connection);
        staged_forget(keeper->staged, connection);
}

static void on_room(RpcConnection *connection, void *data) {
        Keeper *keeper = data;

        keeper_answer_settled(keeper);
        works_pump(keeper->works);
        interpreters_pump(keeper->interpreters);
        processes_pump(keeper->processes);
        tools_pump(keeper->tools, connection);
}

/* --- starting --- */

static int make_plan(Keeper *keeper, Error *reterr) {
        char path[PATH_MAX];
        Store *store = NULL;
        int r = path_of_fd(KEEPER_DIRECTORY_FD, path);

        if (r < 0)
                return error_set(reterr, ERROR_SETUP, -r, "cannot tell the session's directory");
        r = settings_open(KEEPER_DIRECTORY_FD, STORE_WRITE, &store, &keeper->settings, reterr);
        if (r == 0)
                r = settings_plan(&keeper->settings, path, &keeper->plan, reterr);
        if (r == 0)
                r = sources_read(store, path, &keeper->plan, reterr);
        store_free(store);
        sources_pin_own(path, &keeper->plan);
        return r;
}

/* As whoever the keeper is by now. */
static int open_store(Keeper *keeper, Error *reterr) {
        int r = settings_open_store(keeper->plan.state.fd, STORE_WRITE, &keeper->store, reterr);

        return r < 0 ? r : sources_write(keeper->store, &keeper->plan, reterr);
}

static int watch(Keeper *keeper, int fd, LoopWatchFn fn, Error *reterr) {
        LoopWatch *ignored;

        return fd < 0 ? 0 : loop_watch(keeper->loop, fd, EPOLLIN, fn, keeper, &ignored, reterr);
}

static int watch_owner(Keeper *keeper, Error *reterr) {
        if (keeper->owner_fd < 0)
                return 0;
        return loop_watch(keeper->loop, keeper->owner_fd, 0, on_owner_end, keeper,
                          &keeper->owner_watch, reterr);
}

static int watch_all(Keeper *keeper, Error *reterr) {
        int r;

        (void)sigfillset(&keeper->signals);
        (void)sigdelset(&keeper->signals, SIGALRM);
        (void)sigdelset(&keeper->signals, SIGTERM);
        keeper->signal_fd = signalfd(-1, &keeper->signals, SFD_CLOEXEC | SFD_NONBLOCK);
        keeper_take_terminate(keeper->plan.kill_after + KEEPER_END_TIME);
        r = watch(keeper, keeper->signal_fd, on_signal, reterr);
        if (r == 0)
                r = watch(keeper, keeper->sandbox.control_fd, on_control, reterr);
        if (r == 0)
                r = watch(keeper, keeper->sandbox.listener_fd, on_listener, reterr);
        if (r == 0)
                r = watch(keeper, keeper->sandbox.pidfd, on_sandbox_end, reterr);
        if (r == 0)
                r = loop_timer_new(keeper->loop, on_stop, keeper, &keeper->stop_timer, reterr);
        if (r == 0)
                r = loop_timer_new(keeper->loop, on_idle, keeper, &keeper->idle_timer, reterr);
        if (r == 0)
                r = loop_timer_new(keeper->loop, on_rest, keeper, &keeper->rest_timer, reterr);
        if (r == 0)
                r = loop_timer_new(keeper->loop, keeper_note_running, keeper, &keeper->note_timer,
                                   reterr);
        if (r == 0)
                r = loop_timer_new(keeper->loop, keeper_sweep_start, keeper, &keeper->sweep_timer,
                                   reterr);
        if (r == 0)
                r = keeper_sweeper_new(keeper, reterr);
        if (r == 0)
                r = loop_timer_new(keeper->loop, keeper_look_quiet, keeper, &keeper->quiet_timer,
                                   reterr);
        if (r == 0)
                r = loop_timer_new(keeper->loop, keeper_listen, keeper, &keeper->listen_timer,
                                   reterr);
        if (r == 0)
                r = loop_timer_new(keeper->loop, keeper_answer_more, keeper, &keeper->answer_timer,
                                   reterr);
        if (r == 0)
                r = loop_timer_new(keeper->loop, on_look, keeper, &keeper->look_timer, reterr);
        if (r == 0)
                r = watch_owner(keeper, reterr);
        keeper->swept = true;
        if (r == 0)
                keeper_used(keeper);
        if (r == 0)
                on_look(keeper);
        if (r == 0 && keeper->settings.idle)
                loop_timer_set(keeper->idle_timer, time_now_usec() + keeper->settings.idle);
        return r;
}

/* --- what its interpreters tell (inside/interpreter.h) --- */

static void on_run(void *data) {
        keeper_used(data);
}

static void on_run_end(void *data, Process *process) {
        keeper_sweep_behind(data, process);
}

static void on_run_timeout(void *data, const char *id) {
        keeper_audit_end(data, id, CAUSE_TIMEOUT);
}

static const char *on_run_note(void *data, const char *params, const char *result,
                               uint64_t started_ms) {
        return keeper_note_call(data, "python.run", params, result, started_ms);
}

static void on_write_denials(void *data, const Process *process, JsonWriter *w) {
        method_write_denials(data, process, w);
}

/* --- its parts, in the order in which they are made --- */

static int keeper_make_processes(Keeper *keeper, Error *reterr) {
        const ProcessEvents events = { on_answered, on_stopped, on_settled, on_gone,
                                       on_stuck,    on_dropped, keeper };

        return processes_new(keeper->loop, &keeper->launch, &keeper->sandbox, &events,
                             &keeper->processes, reterr);
}

static int keeper_make_files(Keeper *keeper, Error *reterr) {
        int r = files_new(keeper->sandbox.root_fd, keeper->plan.cwd, &keeper->files, reterr);

        if (r < 0)
                return r;
        files_know_plan(keeper->files, &keeper->plan);
        r = works_new(keeper->loop, &keeper->works, reterr);
        if (r == 0)
                r = receives_new(keeper->loop, keeper->files, &keeper->receives, reterr);
        return r == 0 ? staged_new(keeper->files, keeper->works, &keeper->staged, reterr) : r;
}

static int keeper_make_notes(Keeper *keeper, Error *reterr) {
        int r = unwritten_new(keeper->loop, keeper->store, &keeper->unwritten, reterr);

        return r == 0 ? acts_new(keeper->store, keeper->unwritten, &keeper->acts, reterr) : r;
}

static int keeper_make_bridge(Keeper *keeper, Error *reterr) {
        const int root_fd = keeper->sandbox.root_fd;
        int r = inside_write(root_fd, reterr);

        if (r == 0)
                r = tools_new(keeper->loop, keeper->unwritten, &keeper->tools, reterr);
        return r == 0 ? bridge_new(keeper->loop, keeper->tools, root_fd, &keeper->bridge, reterr)
                      : r;
}

static int keeper_make_interpreters(Keeper *keeper, Error *reterr) {
        const InterpreterSession session = { .loop = keeper->loop,
                                             .processes = keeper->processes,
                                             .plan = &keeper->plan,
                                             .program = keeper->settings.policy.python,
                                             .denials = &keeper->denials,
                                             .data = keeper,
                                             .on_run = on_run,
                                             .on_run_end = on_run_end,
                                             .on_timeout = on_run_timeout,
                                             .note = on_run_note,
                                             .write_denials = on_write_denials };

        return interpreters_new(&session, &keeper->interpreters, reterr);
}

static int keeper_make_server(Keeper *keeper, Error *reterr) {
        int fd, r = rpc_server_new(keeper->loop, session_methods, session_methods_count, keeper,
                                   &keeper->server, reterr);

        if (r < 0)
                return r;
        rpc_server_on_end(keeper->server, on_connection_end);
        rpc_server_on_room(keeper->server, on_room);
        rpc_server_on_answer(keeper->server, method_note);
        r = session_listen(keeper->plan.state.fd, &fd, reterr);
        return r < 0 ? r : rpc_server_listen(keeper->server, fd, getuid(), RPC_PEERS_PROVE, reterr);
}

static int keeper_take_lock(Keeper *keeper, Error *reterr) {
        int r = session_lock(KEEPER_DIRECTORY_FD, &keeper->lock_fd, reterr);

        return r == 0 ? owner_watch(KEEPER_DIRECTORY_FD, &keeper->owner_fd, reterr) : r;
}

static int keeper_prepare(Keeper *keeper, Error *reterr) {
        return launch_prepare(&keeper->plan, &keeper->launch, reterr);
}

static int keeper_launch(Keeper *keeper, Error *reterr) {
        int r = launch_start(&keeper->launch, &keeper->sandbox, reterr);

        open_files_raise();
        return r == 0 ? loop_new(&keeper->loop, reterr) : r;
}

static int keeper_confine_itself(Keeper *keeper, Error *reterr) {
        return keeper_confine(keeper, reterr);
}

static int (*const start_steps[])(Keeper *keeper, Error *reterr) = {
        keeper_take_lock,
        make_plan,
        keeper_prepare,
        open_store,
        keeper_due_begin,
        keeper_launch,
        watch_all,
        keeper_make_processes,
        keeper_make_files,
        keeper_make_notes,
        keeper_sweep_temporaries,
        keeper_make_bridge,
        keeper_make_interpreters,
        keeper_make_server,
        keeper_confine_itself,
};

static int keeper_start(Keeper *keeper, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(start_steps); i++)
                r = start_steps[i](keeper, reterr);
        return r;
}

static void keeper_finish(Keeper *keeper) {
        keeper_deafen(keeper);
        keeper_sweep_wait(keeper);
        keeper_take_last_answers(keeper);
        keeper->server = rpc_server_free(keeper->server);
        keeper->receives = receives_free(keeper->receives);
        keeper->works = works_free(keeper->works);
        keeper->staged = staged_free(keeper->staged);
        keeper->acts = acts_free(keeper->acts);
        keeper->bridge = bridge_free(keeper->bridge);
        keeper->interpreters = interpreters_free(keeper->interpreters);
        if (keeper->processes)
                keeper_audit_denials(keeper, NULL);
        keeper->processes = processes_free(keeper->processes);
        keeper->tools = tools_free(keeper->tools);
        sandbox_clear(&keeper->sandbox);
        if (!keeper->renewed)
                keeper_sweep(keeper);
        keeper_sweeper_free(keeper);
        keeper_due_end(keeper);
        keeper->unwritten = unwritten_free(keeper->unwritten);
        keeper->store = store_free(keeper->store);
        keeper->lock_fd = fd_close(keeper->lock_fd);
        keeper_send_last_answers(keeper);
        strlist_clear(&keeper->set_aside);
}

/* Out of whatever the caller stands in. */
static void detach(void) {
        int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

        (void)setsid();
        (void)!chdir("/");
        (void)umask(022);
        for (int fd = 0; fd <= 2; fd++)
                (void)dup2(null_fd, fd);
        if (null_fd > 2)
                fd_close(null_fd);
        (void)fcntl(KEEPER_READY_FD, F_SETFD, FD_CLOEXEC);
        (void)fcntl(KEEPER_DIRECTORY_FD, F_SETFD, FD_CLOEXEC);
}

int keeper_main(int argc, char **argv) {
        static Keeper keeper = { .lock_fd = FD_NONE,
                                 .signal_fd = FD_NONE,
                                 .owner_fd = FD_NONE,
                                 .sandbox = SANDBOX_NONE,
                                 .launch = { .init_fd = FD_NONE,
                                             .workspace_fd = FD_NONE,
                                             .control_fd = FD_NONE,
                                             .terminal = { .output_fd = FD_NONE } } };
        Error error;

        if (argc != 2 || session_name_check(argv[1], NULL) < 0 ||
            fcntl(KEEPER_READY_FD, F_GETFD) < 0 || fcntl(KEEPER_DIRECTORY_FD, F_GETFD) < 0) {
                (void)error_set(&error, ERROR_USAGE, 0, "keeper is started by holt itself");
                error_print(&error, stderr);
                return error_exit_code(&error);
        }
        (void)strcpy(keeper.name, argv[1]);
        detach();
        keeper_end_within(KEEPER_START_TIME);
        keeper.started_ms = time_epoch_ms();
        keeper.used_at = time_now_usec();
#ifdef M_ARENA_MAX
        (void)mallopt(M_ARENA_MAX, 1); /* threads are few, and the keeper is to stay small */
#endif
        if (keeper_start(&keeper, &error) < 0) {
                /* The caller may go on with what needs a session at rest. */
                sandbox_clear(&keeper.sandbox);
                keeper_due_end(&keeper);
                fd_close(keeper.lock_fd);
                (void)!write(KEEPER_READY_FD, &error, sizeof(error));
                return error_exit_code(&error);
        }
        keeper_end_never();
        (void)!write(KEEPER_READY_FD, "", 1);
        (void)close(KEEPER_READY_FD);
        (void)loop_run(keeper.loop);
        keeper_finish(&keeper);
        return 0;
}
