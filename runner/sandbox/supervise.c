/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/supervise.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/sys.h"
#include "base/time.h"
#include "guards/watch.h"
#include "helpers/init-protocol.h"
#include "sandbox/failure.h"
#include "streams/waker.h"

enum {
        KILL_PATIENCE = 500000,   /* usec that init has to kill and reap everything */
        DELIVERY_PAUSE = 1000000, /* usec that a reader may pause when holt has to end */
        OOM_PATIENCE = 2000,      /* usec in which no OOM kill is expected */
};

/* What the main loop knows. */
typedef struct Supervisor {
        const Launch *launch;
        Sandbox *sandbox;
        Terminal *terminal; /* NULL without one */
        int signal_fd;
        sigset_t signals;           /* that it reports */
        uint64_t started, deadline; /* usec of CLOCK_MONOTONIC; deadline 0 is none */
        bool timed_out;       /* TERM has been sent for the time; at the deadline comes KILL */
        bool told_to_stop;    /* a TERM, INT, HUP or QUIT came to holt */
        bool stopping;        /* ... TERM or HUP: at the deadline comes KILL */
        int stop_signal;      /* ... the last of them, */
        bool undelivered;     /* ... which has ended the wait for who reads the output */
        bool cut;             /* TERM has been sent for the output; at the deadline comes KILL */
        bool killing;         /* holt has sent SIGKILL, or had init send it */
        const char *replaced; /* the protection of this path has ended: what runs is killed */
        uint64_t look_at;     /* like deadline: when SIGIO is listened to again */
        bool ended;           /* init has said how the command ended */
        int status;           /* wait status of the command */
        bool failed;          /* init could not execute it */
        InitMessage failure;
        Waker waker;      /* set to the deadline, if the policy has a timeout */
        uint64_t oom_due; /* like deadline: when oom is started; 0 once that is done or vain */
        OomWatch oom;
        Denials *denials;
} Supervisor;

static void tell_init(const Supervisor *s, uint32_t type, int32_t value) {
        const InitMessage message = { .type = type, .value = value };

        (void)send(s->sandbox->control_fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void kill_all(Supervisor *s) {
        s->killing = true;
        (void)sys_pidfd_send_signal(s->sandbox->pidfd, SIGKILL);
}

static void set_deadline(Supervisor *s, uint64_t at) {
        s->deadline = at;
        waker_set(&s->waker, at);
}

/* --- protected files --- */

static void check_protection(Supervisor *s, int signal) {
        const uint64_t before = time_now_usec();
        uint64_t now;

        (void)signal;
        if (!s->replaced)
                s->replaced = watch_find_replaced(s->launch->watch);
        if (s->replaced && !s->ended) {
                s->told_to_stop = true;
                kill_all(s);
        }
        now = time_now_usec();
        s->look_at = now + watch_pause(now - before);
        watch_listen(s->signal_fd, s->signals, false);
}

/* --- stop and go --- */

/* Holt stops only if it can be continued at its deadline, and no more once it ends the command. */
static bool supervise_may_stop(const Supervisor *s) {
        if (s->timed_out || s->stopping || s->cut)
                return false;
        return s->waker.made || !s->deadline;
}

/* Holt can't stop without somebody who watches meanwhile (watch-stopped.c). */
static void stop_with_job(Supervisor *s, pid_t pid, bool for_keys) {
        const Watch *watch = s->launch->watch;
        pid_t watcher;

        if (watch_stopped_begin(watch, s->sandbox->pidfd, &watcher) < 0)
                return;
        terminal_stop(s->terminal, pid, for_keys, &s->waker);
        if (watch_stopped_end(watch, watcher) < 0)
                kill_all(s);
        check_protection(s, 0);
}

/* The command has stopped. If it wants the keys and holt has them, it gets them. Otherwise holt
 * stops with its whole job, as the caller's terminal would have done, and so does all that runs
 * inside. A command that holt is ending stays stopped until it is killed. */
static void supervise_command_stopped(Supervisor *s, int signal) {
        bool wants_keys = signal == SIGTTIN || signal == SIGTTOU;

        if (!s->terminal)
                return;
        if (!wants_keys || !terminal_in_foreground(s->terminal)) {
                if (!supervise_may_stop(s))
                        return;
                tell_init(s, INIT_SIGNAL_ALL, SIGSTOP);
                stop_with_job(s, 0, wants_keys);
        }
        if (wants_keys)
                terminal_enter(s->terminal);
        tell_init(s, INIT_CONTINUE, 0);
}

/* --- signals to holt --- */

/* INT and QUIT are keys, and the command may have its own mind about them. TERM and HUP are meant
 * for all that runs here, and what does not end by itself is killed after limits.kill_after; at
 * once at the second. */
static void told_to_stop(Supervisor *s, int signal) {
        s->stop_signal = signal;
        if (signal == SIGINT || signal == SIGQUIT) {
                s->told_to_stop = true;
                return tell_init(s, INIT_SIGNAL, signal);
        }
        if (s->told_to_stop && s->stopping)
                return kill_all(s);
        s->told_to_stop = s->stopping = true;
        set_deadline(s, time_now_usec() + s->launch->plan->kill_after);
        tell_init(s, INIT_SIGNAL_ALL, signal);
}

static void supervise_resize(Supervisor *s, int signal) {
        (void)signal;
        if (s->terminal)
                terminal_resize(s->terminal);
}

static void supervise_go_on(Supervisor *s, int signal) {
        (void)signal;
        if (s->terminal && !s->launch->terminal.background)
                terminal_enter(s->terminal);
}

static void stop_alone(Supervisor *s, int signal) {
        (void)signal;
        if (s->terminal && supervise_may_stop(s))
                stop_with_job(s, getpid(), false);
}

static void check_look(Supervisor *s) {
        if (!s->look_at || time_now_usec() < s->look_at)
                return;
        s->look_at = 0;
        watch_listen(s->signal_fd, s->signals, true);
}

static void pass_on(Supervisor *s, int signal) {
        tell_init(s, INIT_SIGNAL, signal);
}

/* Nothing is done about others; what SIGCHLD means the pidfd says. */
static const struct {
        int signal;
        void (*act)(Supervisor *s, int signal);
} signal_actions[] = {
        { SIGWINCH, supervise_resize }, { SIGCONT, supervise_go_on },
        { SIGTSTP, stop_alone },        { SIGTTIN, stop_alone },
        { SIGTTOU, stop_alone },        { SIGTERM, told_to_stop },
        { SIGINT, told_to_stop },       { SIGHUP, told_to_stop },
        { SIGQUIT, told_to_stop },      { WATCH_SIGNAL, check_protection },
        { SIGUSR1, pass_on },           { SIGUSR2, pass_on },
        { SIGALRM, pass_on },
};

static void supervise_on_signal(Supervisor *s, int signal) {
        for (size_t i = 0; i < ELEMENTSOF(signal_actions); i++)
                if (signal_actions[i].signal == signal)
                        signal_actions[i].act(s, signal);
}

static void read_signals(Supervisor *s) {
        struct signalfd_siginfo info[8];
        ssize_t n = read(s->signal_fd, info, sizeof(info));

        for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(info[0]); i++)
                supervise_on_signal(s, (int)info[i].ssi_signo);
}

/* --- what init says --- */

static void supervise_read_message(Supervisor *s, const InitMessage *message) {
        if (s->ended)
                return;
        if (message->type == INIT_ENDED) {
                s->ended = true;
                s->status = message->value;
        } else if (message->type == INIT_FAILED) {
                s->ended = s->failed = true;
                s->failure = *message;
        } else if (message->type == INIT_STOPPED) {
                supervise_command_stopped(s, message->value);
        }
}

/* Returns false when there is nobody left to say anything. */
static bool read_control(Supervisor *s) {
        InitMessage message;
        ssize_t n;

        while ((n = recv(s->sandbox->control_fd, &message, sizeof(message), MSG_DONTWAIT)) ==
               (ssize_t)sizeof(message))
                supervise_read_message(s, &message);
        return n != 0;
}

/* --- time --- */

static int poll_timeout(const Supervisor *s) {
        uint64_t now, left, next = s->deadline;

        if (s->oom_due && (!next || s->oom_due < next))
                next = s->oom_due;
        if (s->look_at && (!next || s->look_at < next))
                next = s->look_at;
        if (!next)
                return -1;
        now = time_now_usec();
        left = next > now ? next - now : 0;
        return left > 3600000000ULL ? 3600000 : (int)((left + 999) / 1000);
}

/* First by init, which then reaps what it has killed, so that its usage counts; the pidfd is for
 * when init does not get round to it. */
static void supervise_kill_in_time(Supervisor *s) {
        if (s->killing) {
                set_deadline(s, 0);
                return kill_all(s);
        }
        s->killing = true;
        set_deadline(s, time_now_usec() + KILL_PATIENCE);
        tell_init(s, INIT_SIGNAL_ALL, SIGKILL);
}

static void check_time(Supervisor *s) {
        if (!s->deadline || s->ended || time_now_usec() < s->deadline)
                return;
        if (s->timed_out || s->stopping || s->cut)
                return supervise_kill_in_time(s);
        s->timed_out = true;
        set_deadline(s, s->deadline + s->launch->plan->kill_after);
        tell_init(s, INIT_SIGNAL_ALL, SIGTERM);
}

/* Not at once: the counter is a tenth of a millisecond away, a short command is over before it need
 * be read, and to use up a cgroup's memory takes longer. */
static void check_oom(Supervisor *s) {
        if (!s->oom_due || (!s->ended && time_now_usec() < s->oom_due))
                return;
        s->oom_due = 0;
        if (!s->ended)
                oom_watch_start("", &s->oom);
}

/* --- output --- */

/* As when the time is over; what it still prints is read and dropped. */
static void check_output(Supervisor *s) {
        if (s->cut || s->ended || s->timed_out || s->stopping || !output_passed(s->launch->output))
                return;
        s->cut = true;
        set_deadline(s, time_now_usec() + s->launch->plan->kill_after);
        tell_init(s, INIT_SIGNAL_ALL, SIGTERM);
}

/* Until when the caller may leave its output where it is, if none of it moves meanwhile: to the end
 * of the time, and for a pause after it or when holt was told to stop. 0 is for ever. */
static uint64_t delivery_end(const Supervisor *s) {
        const uint64_t pause = time_now_usec() + DELIVERY_PAUSE, timeout = s->launch->plan->timeout;

        if (s->timed_out || s->stopping)
                return pause;
        if (!timeout)
                return 0;
        return s->started + timeout > pause ? s->started + timeout : pause;
}

/* The caller has not taken it all. earlier is the signal that has stopped the command. */
static void supervise_give_up(Supervisor *s, int earlier) {
        output_give_up(s->launch->output);
        if (!s->stop_signal && s->stopping)
                s->stop_signal = earlier;
        s->undelivered = s->stop_signal;
        s->timed_out |= !s->undelivered && !output_passed(s->launch->output);
}

/* What the command has printed is the caller's, and slow readers get all of it. A signal that would
 * stop the command stops this. */
static void supervise_deliver(Supervisor *s) {
        struct pollfd fds[1 + OUTPUT_POLL_MAX] = { { .fd = s->signal_fd, .events = POLLIN } };
        Output *output = s->launch->output;
        const int earlier = s->stop_signal;

        s->stop_signal = 0;
        s->oom_due = s->look_at = 0; /* nothing is left to look after */
        s->deadline = delivery_end(s);
        for (output_end(output); output_waits(output);) {
                size_t more = output_poll(output, fds + 1);

                if (poll(fds, 1 + more, poll_timeout(s)) < 0 && errno != EINTR)
                        s->stop_signal = SIGKILL;
                else if (fds[0].revents)
                        read_signals(s);
                if (s->stop_signal || (s->deadline && time_now_usec() >= s->deadline))
                        return supervise_give_up(s, earlier);
                if (output_pump(output, fds + 1))
                        s->deadline = delivery_end(s);
        }
}

/* --- the loop --- */

enum {
        POLL_CONTROL,
        POLL_INIT,
        POLL_SIGNAL,
        POLL_LISTENER,
        POLL_TERMINAL,
        POLL_MAX = POLL_TERMINAL + 3 + OUTPUT_POLL_MAX
};

/* Until init is gone: its last word may be read before or after that shows. */
static void run_loop(Supervisor *s) {
        struct pollfd fds[POLL_MAX] = {
                [POLL_CONTROL] = { .fd = s->sandbox->control_fd, .events = POLLIN },
                [POLL_INIT] = { .fd = s->sandbox->pidfd, .events = POLLIN },
                [POLL_SIGNAL] = { .fd = s->signal_fd, .events = POLLIN },
                [POLL_LISTENER] = { .fd = s->sandbox->listener_fd, .events = POLLIN },
        };

        for (;;) {
                size_t more = s->terminal ? terminal_poll(s->terminal, fds + POLL_TERMINAL) : 0;
                struct pollfd *output = fds + POLL_TERMINAL + more;
                size_t count = POLL_TERMINAL + more + output_poll(s->launch->output, output);

                if (poll(fds, count, poll_timeout(s)) < 0 && errno != EINTR)
                        return kill_all(s);
                if (fds[POLL_LISTENER].revents & POLLIN)
                        (void)denials_answer(s->denials, s->sandbox->listener_fd);
                else if (fds[POLL_LISTENER].revents)
                        fds[POLL_LISTENER].fd = -1; /* nobody is left who could call */
                if (s->terminal)
                        terminal_pump(s->terminal, fds + POLL_TERMINAL, more);
                (void)output_pump(s->launch->output, output);
                if (fds[POLL_CONTROL].revents && !read_control(s))
                        fds[POLL_CONTROL].fd = -1;
                if (fds[POLL_SIGNAL].revents)
                        read_signals(s);
                if (fds[POLL_INIT].revents)
                        return;
                check_look(s);
                check_output(s);
                check_time(s);
                check_oom(s);
        }
}

static int supervise_open_signals(Supervisor *s, Error *reterr) {
        (void)sigfillset(&s->signals);
        s->signal_fd = signalfd(-1, &s->signals, SFD_CLOEXEC | SFD_NONBLOCK);
        return s->signal_fd < 0 ? error_set(reterr, ERROR_SETUP, errno, "cannot make a signalfd")
                                : 0;
}

/* --- the end --- */

static void fill_usage(Usage *usage, const Supervisor *s, const struct rusage *r) {
        usage->wall_us = time_now_usec() - s->started;
        usage->user_us = (uint64_t)r->ru_utime.tv_sec * 1000000 + (uint64_t)r->ru_utime.tv_usec;
        usage->system_us = (uint64_t)r->ru_stime.tv_sec * 1000000 + (uint64_t)r->ru_stime.tv_usec;
        usage->max_rss = (uint64_t)r->ru_maxrss * 1024;
}

/* Only the cgroup's counter proves something. The OOM killer may have ended another process of the
 * cgroup while somebody else killed the command; nobody could tell these apart. */
static bool supervise_maybe_oom(const Supervisor *s, const OomKills *kills) {
        return !s->killing && kills->scope == OOM_CGROUP && kills->count > 0;
}

static void fill_cause(Outcome *out, const Supervisor *s) {
        const Ending ending = { .reported = s->ended,
                                .status = s->status,
                                .timed_out = s->timed_out,
                                .output_passed = output_passed(s->launch->output),
                                .told_to_stop = s->told_to_stop,
                                .oom = supervise_maybe_oom(s, &out->oom_kills),
                                .undelivered = s->undelivered ? s->stop_signal : 0 };

        outcome_conclude(out, &ending);
}

/* Where the caller's file was full or the like the cause of the end stays, and the exit code is
 * holt's own. */
static int supervise_fill_output(Outcome *out, const Output *output, Error *reterr) {
        int r = output_failure(output, reterr);

        output_count(output, &out->output, &out->output_dropped);
        if (r < 0)
                out->exit_code = error_exit_code(reterr);
        return r;
}

static int supervise_finish(Supervisor *s, Outcome *out, Error *reterr) {
        struct rusage usage = { 0 };

        while (wait4(s->sandbox->pid, NULL, 0, &usage) < 0 && errno == EINTR)
                ;
        s->sandbox->pidfd = fd_close(s->sandbox->pidfd);
        (void)read_control(s);
        /* SIGIO may be pending. */
        if (s->look_at && !s->replaced)
                s->replaced = watch_find_replaced(s->launch->watch);
        if (s->terminal) {
                terminal_drain(s->terminal);
                s->terminal = terminal_free(s->terminal);
        }
        supervise_deliver(s);
        fill_usage(&out->usage, s, &usage);
        out->oom_kills = oom_watch_end(&s->oom);
        if (s->failed) {
                int r = failure_explain(s->launch, &s->failure, reterr);

                out->cause = CAUSE_ERROR;
                out->exit_code = error_exit_code(reterr);
                return r;
        }
        fill_cause(out, s);
        out->replaced = s->replaced;
        return supervise_fill_output(out, s->launch->output, reterr);
}

static int supervise_take_terminal(Supervisor *s, Error *reterr) {
        if (s->sandbox->terminal_fd < 0)
                return 0;
        s->terminal = terminal_new(&s->launch->terminal, s->sandbox->terminal_fd,
                                   output_budget(s->launch->output));
        if (!s->terminal)
                return error_oom(reterr);
        if (!s->launch->terminal.background)
                terminal_enter(s->terminal);
        return 0;
}

int supervise(const Launch *launch, Sandbox *sandbox, Outcome *ret, Error *reterr) {
        Supervisor s = { .launch = launch,
                         .sandbox = sandbox,
                         .signal_fd = FD_NONE,
                         .started = sandbox->started,
                         .oom = OOM_WATCH_NONE,
                         .denials = &ret->denials };
        int r = supervise_open_signals(&s, reterr);

        *ret = (Outcome){ .cause = CAUSE_ERROR, .exit_code = 125 };
        s.oom_due = s.started + OOM_PATIENCE;
        if (launch->plan->timeout) {
                (void)waker_make(&s.waker);
                set_deadline(&s, s.started + launch->plan->timeout);
        }
        if (r == 0)
                r = supervise_take_terminal(&s, reterr);
        if (r == 0) {
                run_loop(&s);
                r = supervise_finish(&s, ret, reterr);
        }
        fd_close(s.signal_fd);
        return r;
}
