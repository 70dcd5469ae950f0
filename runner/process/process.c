/* SPDX-License-Identifier: Apache-2.0 */
#include "process/process-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/pass-fds.h"
#include "base/paths.h"
#include "base/sys.h"
#include "base/wait.h"
#include "sandbox/failure.h"

enum {
        HANG_UP_TIME = 100000, /* usec between two SIGHUPs */
        OOM_TOGETHER = 500000, /* usec during which the OOM killer's kills are counted together */
        START_TIME = HOLT_WAIT(20000000), /* usec in which a command must start */
        /* KILL_TIME: usec in which init must report the end of a process that it was told to kill.
         * SLOW_TIME: additional usec if init is seen to work. */
        KILL_TIME = HOLT_WAIT(5000000),
        SLOW_TIME = HOLT_WAIT(15000000),
};

/* --- messages to init --- */

static void process_on_gone(Process *process, const SessionMessage *message);

/* Notes the effect of a signal. No process can refuse SIGSTOP or SIGCONT. all: a signal to all
 * processes is followed by SIGCONT. */
static void expect_stop(Process *process, int signal, bool all) {
        if (signal == SIGSTOP)
                process->stopped = process->running;
        else if (signal == SIGCONT ||
                 (all && signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU))
                process->stopped = false;
}

/* Whether such a signal ends a command that waits for its reader. */
static bool process_signal_ends(int signal) {
        return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT ||
               signal == SIGKILL;
}

static void process_stop_delivery(Process *process, int signal) {
        if (process->delivers && process_signal_ends(signal))
                loop_timer_set(process->timer, time_now_usec());
}

void process_signal(Process *process, int signal) {
        expect_stop(process, signal, false);
        process_stop_delivery(process, signal);
        if (process->running)
                process_tell_signal(process, signal);
}

void process_signal_all(Process *process, int signal) {
        expect_stop(process, signal, true);
        process_stop_delivery(process, signal);
        process_tell_kill(process, signal);
}

void process_resume(Process *process) {
        process->stopped = false;
        process_tell_resume(process);
}

/* Drops a start that init has not got. The timer reports the end, because the caller may be using
 * the list of waiting clients. */
static void process_withdraw(Process *process) {
        process_forget_due(process);
        process->withdrawn = process->doomed = true;
        loop_timer_set(process->timer, time_now_usec());
}

/* Kills a process. Commands inside may delay a start, or init itself, so the sandbox is stopped
 * after KILL_TIME. */
static void process_kill_in_time(Process *process) {
        if (process->start && process->timer)
                return process_withdraw(process);
        process_tell_kill(process, SIGKILL);
        process_stop_delivery(process, SIGKILL);
        if (process->settled || process->delivers || process->doomed || !process->timer)
                return;
        process->doomed = true;
        process->hang_up = false;
        loop_timer_set(process->timer, time_now_usec() + KILL_TIME);
}

void process_set_deadline(Process *process) {
        const uint64_t timeout = process->timeout;
        uint64_t at = timeout ? process->started_at + timeout : 0;

        if (!process->answered && (!timeout || timeout > START_TIME))
                at = process->started_at + START_TIME;
        loop_timer_set(process->timer, at);
}

/* Notes that holt ends the command, unless it has already ended. */
static void process_note_killed(Process *process) {
        process->killed |= !process->settled && !process->delivers && !process->timed_out;
}

void process_kill(Process *process) {
        process_note_killed(process);
        process_kill_in_time(process);
}

/* An interactive shell ignores TERM, so its terminal hangs up. The terminal hangs up again a moment
 * later, because readline(3) passes on only one of two signals that come together. */
void process_terminate(Process *process) {
        const uint64_t kill_after = process->all->launch->plan->kill_after;

        process_note_killed(process);
        if (process->doomed)
                return;
        if (process->start)
                return process_kill_in_time(process);
        process_tell_kill(process, SIGTERM);
        if (process->has_terminal)
                process_tell_kill(process, SIGHUP);
        if (process->delivers)
                return process_stop_delivery(process, SIGTERM);
        process->hang_up = process->has_terminal && kill_after > HANG_UP_TIME;
        if (process->timer)
                loop_timer_set(process->timer,
                               time_now_usec() + (process->hang_up ? HANG_UP_TIME : kill_after));
}

/* An init that has read its messages, or has just ended another command, is not stuck. On a busy
 * machine, it may have much to kill. */
static bool init_works(const Processes *all) {
        return processes_are_told(all) || time_now_usec() - all->gone_at < KILL_TIME;
}

/* Reports the end of a process now, even if some of its processes still exist. */
static void give_up_on(Process *process) {
        const SessionMessage gone = { .value = SIGKILL };
        Processes *all = process->all;

        if (!process->withdrawn && !process->slow && init_works(all)) {
                process->slow = true;
                loop_timer_set(process->timer, time_now_usec() + SLOW_TIME);
                return;
        }
        process_on_gone(process, &gone);
        if (!process->withdrawn)
                all->events.stuck(all->events.data);
}

static bool is_out_of_time(const Process *process) {
        return process->timeout && time_now_usec() >= process->started_at + process->timeout;
}

static void process_settle(Process *process);
static void process_leave(Process *process);

/* The output has been delivered, or must not be waited for any longer: the timeout is over, or the
 * process is killed. */
static void process_end_delivery(Process *process) {
        if (overhear_owes(process) && is_out_of_time(process))
                (void)snprintf(
                        process->stream_error, sizeof(process->stream_error),
                        "cannot write all output within the timeout: its reader is too slow");
        process->delivers = false;
        process_settle(process);
        if (process->gone)
                process_leave(process);
}

/* Sends TERM the first time, KILL the next time. Sends KILL at once if the process was told to end,
 * or has not started yet, because TERM would be lost. */
void process_on_time(void *data) {
        Process *process = data;

        if (process->delivers)
                return process_end_delivery(process);
        if (process->gone)
                return;
        if (process->doomed && !process->settled)
                return give_up_on(process);
        if (process->hang_up) {
                process->hang_up = false;
                process_tell_kill(process, SIGHUP);
                loop_timer_set(process->timer, time_now_usec() +
                                                       process->all->launch->plan->kill_after -
                                                       HANG_UP_TIME);
                return;
        }
        if (process->timed_out || process->killed || !process->running) {
                process->timed_out |= !process->settled && !process->killed &&
                                      is_out_of_time(process);
                return process_kill_in_time(process);
        }
        process->timed_out = true;
        process_tell_kill(process, SIGTERM);
        loop_timer_set(process->timer, time_now_usec() + process->all->launch->plan->kill_after);
}

/* --- messages from init --- */

static Process *find_number(const Processes *all, uint32_t number) {
        for (Process *p = all->first; p; p = p->next)
                if (p->number == number)
                        return p;
        return NULL;
}

/* The master is written for stdin and read for stdout or stderr, unless those are pipes of the
 * keeper's. Each watch of the loop needs its own fd. */
static void process_take_terminal(Process *process, int master_fd) {
        Error ignored;

        (void)fcntl(master_fd, F_SETFL, O_RDWR | O_NONBLOCK);
        process->master = fcntl(master_fd, F_DUPFD_CLOEXEC, 3);
        if (process->input < 0)
                process->input = fcntl(master_fd, F_DUPFD_CLOEXEC, 3);
        for (int i = 0; i < CAPTURE_STREAMS; i++)
                if (process->streams[i] < 0) {
                        process->streams[i] = fcntl(master_fd, F_DUPFD_CLOEXEC, 3);
                        break;
                }
        (void)process_watch_streams(process, &ignored);
}

/* Returns whether the command did not start in time. That stays the reason for its end, even if
 * init still reports the start. */
static bool process_is_late(const Process *process) {
        return process->doomed && !process->timed_out && !process->killed;
}

static void on_started(Process *process, const SessionMessage *message, int *master_fd) {
        if (process->answered || process_is_late(process))
                return;
        process->answered = process->started = process->running = true;
        process->pid = message->value;
        if (!process->doomed && !process->killed)
                process_set_deadline(process);
        /* The terminal's master is the only fd that is accepted from inside, and only if a client
         * has asked for a terminal. */
        if (*master_fd >= 0 && (!process->has_terminal || !isatty(*master_fd)))
                *master_fd = fd_close(*master_fd);
        if (*master_fd >= 0 && !process->gives_master) {
                process_take_terminal(process, *master_fd);
                *master_fd = fd_close(*master_fd);
        }
        process->all->events.answered(process->all->events.data, process, TAKE_FD(*master_fd));
}

static void process_settle(Process *process) {
        if (process->settled)
                return;
        process->settled = true;
        process->all->events.settled(process->all->events.data, process);
}

/* The command has ended. If the caller's pipe has no room for its last output, it settles later, so
 * that this output comes before what holt prints. A command that a signal has ended is not waited
 * for: with the caller's pipe as its own, it would have died without writing the rest. */
static void process_end(Process *process) {
        if (process->settled || process->delivers)
                return;
        process_drain(process);
        process->ended_at = time_now_usec();
        process->outcome.usage.wall_us = process->ended_at - process->started_at;
        process->delivers = process->timer && !process->killed && !process->timed_out &&
                            !process_signal_ends(process->outcome.signal) &&
                            overhear_note_owed(process);
        if (!process->delivers)
                process_settle(process);
}

/* Explains the failure by the session's plan, with the argv and the working directory of this
 * command. */
static void process_explain(Process *process, const InitMessage *failure) {
        Launch launch = *process->all->launch;
        LaunchPlan plan = *launch.plan;
        _cleanup_free_ char *cwd = path_join(plan.cwd, process->cwd);

        plan.argv = process->argv;
        if (cwd)
                plan.cwd = cwd;
        launch.plan = &plan;
        (void)failure_explain(&launch, failure, &process->error);
}

static void answer_error(Process *process) {
        process->answered = true;
        process->outcome.cause = CAUSE_ERROR;
        process->outcome.exit_code = error_exit_code(&process->error);
        process->all->events.answered(process->all->events.data, process, FD_NONE);
        process_end(process);
}

static void on_failed(Process *process, const SessionMessage *message) {
        const InitMessage failure = { .type = INIT_FAILED,
                                      .value = message->value,
                                      .detail = message->detail };

        char quoted[1024];

        if (process->answered)
                return;
        if (message->detail == INIT_STEP_CWD) {
                (void)error_set(&process->error, ERROR_USAGE, message->value,
                                "cannot start in the directory \"%s\"",
                                str_quote(process->cwd, quoted, sizeof(quoted)));
                (void)error_cure(&process->error, 0,
                                 path_is_tilde(process->cwd)
                                         ? PATH_TILDE_CURE
                                         : "Name a directory that exists inside and that the "
                                           "command may enter.");
        } else {
                process_explain(process, &failure);
        }
        answer_error(process);
}

/* The kernel's counter does not tell which process was killed, and several may be killed together.
 * If it has just grown, a SIGKILL that nobody here sent is taken for the OOM killer's. */
static bool process_maybe_oom(const Process *process, int signal) {
        Processes *all = process->all;

        if (signal != SIGKILL || process->timed_out || process->killed)
                return false;
        if (oom_watch_killed(&all->oom))
                all->oom_until = time_now_usec() + OOM_TOGETHER;
        return time_now_usec() < all->oom_until;
}

/* status: as the monitor has reported it, or NULL if it has not. */
static void process_conclude(Process *process, const int *status) {
        Ending ending = { .reported = status,
                          .status = status ? *status : 0,
                          .timed_out = process->timed_out,
                          .told_to_stop = process->killed };

        ending.oom = status && process_maybe_oom(process, ending_signal(&ending));
        process->running = false;
        outcome_conclude(&process->outcome, &ending);
}

static void on_ended(Process *process, const SessionMessage *message) {
        Outcome *out = &process->outcome;

        if (!process->running)
                return;
        process->alone = message->detail == 1;
        out->usage.user_us = message->user_us;
        out->usage.system_us = message->system_us;
        out->usage.max_rss = message->max_rss;
        process_conclude(process, &message->value);
        process_end(process);
        /* The processes that the command has left continue. If the process was told to end, they
         * must still be killed. */
        if (!process->timed_out && !process->killed && !process->delivers)
                loop_timer_set(process->timer, 0);
}

static void process_on_stopped(Process *process, const SessionMessage *message) {
        if (!process->running)
                return;
        process->stopped = true;
        process->all->events.stopped(process->all->events.data, process, message->value);
}

/* The end is unknown, because the monitor did not report it. */
static void settle_unknown(Process *process) {
        process_conclude(process, NULL);
        process_end(process);
}

static void answer_late(Process *process) {
        (void)error_set(&process->error, ERROR_SETUP, ETIMEDOUT,
                        "the command did not start within %d s", START_TIME / 1000000);
        (void)error_cure(&process->error, 0,
                         "A process of the session may have stopped it by SIGSTOP. Kill that "
                         "process (holt ps NAME lists them, holt kill NAME ID kills one), or stop "
                         "the session: holt stop NAME");
        answer_error(process);
}

/* Answers a process of which init has not reported an end. A monitor reports nothing if it was
 * killed: by the command, together with the command, or because the start took too long. The end is
 * known before the start is answered, and is sent with it. A client that asks later may find that
 * the keeper has gone. */
static void answer_for_monitor(Process *process, bool killed) {
        const SessionMessage failed = { .value = EAGAIN, .detail = INIT_STEP_FORK };

        if (process_is_late(process))
                return answer_late(process);
        if (!killed)
                return on_failed(process, &failed);
        process->answered = process->started = true;
        settle_unknown(process);
        process->all->events.answered(process->all->events.data, process, FD_NONE);
}

static void process_leave(Process *process) {
        process_drain(process);
        process_release(process, false);
        process->all->events.gone(process->all->events.data, process);
}

static void process_on_gone(Process *process, const SessionMessage *message) {
        process->gone = true;
        process_forget_due(process);
        if (!process->answered)
                answer_for_monitor(process, message->value != 0);
        else if (process->running)
                settle_unknown(process);
        if (!process->delivers)
                process_leave(process);
}

void processes_kill_replaced(Processes *all, const char *path) {
        for (Process *p = all->first; p; p = p->next) {
                if (p->settled || p->delivers)
                        continue;
                p->replaced = path;
                p->killed |= !p->timed_out;
        }
}

void processes_settle(Processes *all) {
        const SessionMessage gone = { .value = SIGKILL };

        for (Process *p = all->first; p; p = p->next) {
                if (p->started && !p->gone)
                        process_on_gone(p, &gone);
                if (p->delivers)
                        process_end_delivery(p);
        }
}

void processes_end_told(Processes *all) {
        const SessionMessage gone = { .value = SIGKILL };

        for (Process *p = all->first; p; p = p->next) {
                if (!p->gone && !p->settled && (p->timed_out || (p->killed && !p->replaced)))
                        process_on_gone(p, &gone);
                if (p->delivers)
                        process_end_delivery(p);
        }
}

void process_not_started(Process *process) {
        process->gone = true;
        answer_error(process);
        process_release(process, true);
}

static void process_obey(Processes *all, const SessionMessage *message, int *fd) {
        Process *process = find_number(all, message->exec);

        /* A message about a process that init does not know is ignored. */
        if (!process || process->gone || process->start || process->withdrawn)
                return;
        if (message->type == SESSION_STARTED)
                on_started(process, message, fd);
        else if (message->type == SESSION_FAILED)
                on_failed(process, message);
        else if (message->type == SESSION_STOPPED)
                process_on_stopped(process, message);
        else if (message->type == SESSION_ENDED)
                on_ended(process, message);
        else if (message->type == SESSION_GONE) {
                all->gone_at = time_now_usec();
                process_on_gone(process, message);
        }
}

/* Returns 1 after a message, 0 if there was none, or a negative errno. */
static int processes_listen_once(Processes *all) {
        SessionMessage message;
        _cleanup_close_ int fd = FD_NONE;
        const ssize_t n = receive_with_fd(all->sandbox->control_fd, &message, sizeof(message), &fd,
                                          MSG_DONTWAIT);

        if (n < 0 && errno == ECONNRESET) {
                outbox_not_read(all);
                return 1;
        }
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (n == 0)
                return -EPIPE;
        if (n == sizeof(message))
                process_obey(all, &message, &fd);
        return 1;
}

int processes_listen(Processes *all) {
        int r = 1;

        for (int i = 0; r > 0 && i < 64; i++)
                r = processes_listen_once(all);
        return r < 0 ? r : 0;
}
