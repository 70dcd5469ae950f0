/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/supervise.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
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
#include "outcome/network-words.h"
#include "sandbox/asking.h"
#include "sandbox/failure.h"
#include "streams/waker.h"

enum {
        KILL_PATIENCE = 500000,   /* Microseconds in which init must kill and reap all processes. */
        DELIVERY_PAUSE = 1000000, /* Microseconds that a reader may pause when holt must end. */
        SAME_REQUEST = 1000000,   /* Microseconds in which signals are one request to stop. */
        PUT_OFF_MAX = 64,         /* See supervise_prints(). */
        OOM_PATIENCE = 2000,      /* Microseconds in which no OOM kill is expected. */
};

/* State of the main loop. */
typedef struct Supervisor {
        const Launch *launch;
        Sandbox *sandbox;
        Terminal *terminal; /* NULL without a terminal. */
        Asking *asking;     /* NULL if nobody can be asked. */
        unsigned put_off;   /* Turns that events of the network have waited for the command's
                               output. */
        int signal_fd;
        sigset_t signals;           /* Signals that signal_fd reports. */
        uint64_t started, deadline; /* Microseconds of CLOCK_MONOTONIC; deadline 0 means none. */
        bool timed_out;             /* Out of time: TERM was sent, KILL follows at the deadline. */
        bool told_to_stop;          /* TERM, INT, HUP or QUIT was sent to holt. */
        Interrupt interrupt;
        bool stopping;        /* TERM or HUP was sent to holt: KILL follows at the deadline. */
        uint64_t impatient;   /* usec: from then on, another TERM or HUP kills at once. */
        int stop_signal;      /* The last of these signals. */
        bool undelivered;     /* stop_signal ended the wait for a reader of the output. */
        bool cut;             /* Too much output: TERM was sent, KILL follows at the deadline. */
        bool killing;         /* holt has sent SIGKILL, or has told init to send it. */
        const char *replaced; /* A protected path that was replaced: all processes are killed. */
        uint64_t look_at;     /* Like deadline: the time to listen to SIGIO again. */
        bool ended;           /* init has reported the command's end. */
        int status;           /* Wait status of the command. */
        bool failed;          /* init could not execute the command. */
        InitMessage failure;
        uint64_t oom_due; /* Like deadline: the time to start oom; 0 afterwards. */
        OomWatch oom;
        Denials *denials;
        Tail printed; /* The last output of the terminal. */
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
        waker_set(&s->sandbox->waker, at);
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

/* Whether holt may stop: only if it can be continued at its deadline, and not once it ends the
 * command. */
static bool supervise_may_stop(const Supervisor *s) {
        if (s->timed_out || s->stopping || s->cut)
                return false;
        return s->sandbox->waker.made || !s->deadline;
}

/* Stops holt. A child must watch the protected files meanwhile (watch-stopped.c). */
static void stop_with_job(Supervisor *s, pid_t pid, bool for_keys) {
        const Watch *watch = s->launch->watch;
        pid_t watcher;

        if (watch_stopped_begin(watch, s->sandbox->pidfd, &watcher) < 0)
                return;
        terminal_stop(s->terminal, pid, for_keys, &s->sandbox->waker);
        if (watch_stopped_end(watch, watcher) < 0)
                kill_all(s);
        check_protection(s, 0);
}

/* Handles a command that has stopped. If it wants keys and holt can read them, it gets them.
 * Otherwise holt stops with its whole job, as the caller's terminal would have done, and all
 * processes inside stop too. A command that holt is ending stays stopped until it is killed. */
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

/* Handles a signal that asks holt to stop. INT and QUIT come from keys, and the command may handle
 * them in its own way. TERM and HUP go to all processes inside. Those that do not end are killed
 * after limits.kill_after, or at once by another signal. But timeout(1) and some shells send the
 * same signal twice, to holt and to its process group: that is one request. */
static void told_to_stop(Supervisor *s, int signal) {
        s->stop_signal = signal;
        if (signal == SIGINT)
                s->interrupt = INTERRUPT_SIGNAL;
        if (signal == SIGINT || signal == SIGQUIT) {
                s->told_to_stop = true;
                return tell_init(s, INIT_SIGNAL, signal);
        }
        if (s->stopping && time_now_usec() < s->impatient)
                return;
        if (s->stopping)
                return kill_all(s);
        s->told_to_stop = s->stopping = true;
        s->impatient = time_now_usec() + SAME_REQUEST;
        set_deadline(s, time_now_usec() + s->launch->plan->kill_after);
        tell_init(s, INIT_SIGNAL_ALL, signal);
}

/* Handles Ctrl-C at a question, which never reached the command or the rest of the job. */
static void supervise_interrupt(void *data) {
        Supervisor *s = data;

        if (s->terminal)
                return terminal_interrupt(s->terminal);
        told_to_stop(s, SIGINT);
        s->interrupt = INTERRUPT_KEY;
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

/* Other signals are ignored. SIGCHLD needs no action, because the pidfd reports the end of init. */
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

/* --- messages from init --- */

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

/* Returns false if no process is left that could send a message. */
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

/* Tells init to kill everything: it then reaps the killed processes, so that their usage counts. If
 * init does not do so in time, the pidfd is used. */
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

/* Starts the OOM watch after a delay. Reading the counter takes a tenth of a millisecond. A short
 * command is spared that: it takes longer to use up a cgroup's memory. */
static void check_oom(Supervisor *s) {
        if (!s->oom_due || (!s->ended && time_now_usec() < s->oom_due))
                return;
        s->oom_due = 0;
        if (!s->ended)
                oom_watch_start("", &s->oom);
}

/* --- output --- */

/* Ends the command after too much output, in the same way as after a timeout. Further output is
 * read and dropped. */
static void check_output(Supervisor *s) {
        if (s->cut || s->ended || s->timed_out || s->stopping || !output_passed(s->launch->output))
                return;
        s->cut = true;
        set_deadline(s, time_now_usec() + s->launch->plan->kill_after);
        tell_init(s, INIT_SIGNAL_ALL, SIGTERM);
}

/* Returns the time at which holt gives the output up if none of it has moved until then. Normally
 * that is the end of the timeout. After the timeout, or if holt was told to stop, it is the end of
 * a short pause. 0 means never. */
static uint64_t delivery_end(const Supervisor *s) {
        const uint64_t pause = time_now_usec() + DELIVERY_PAUSE, timeout = s->launch->plan->timeout;

        if (s->timed_out || s->stopping)
                return pause;
        if (!timeout)
                return 0;
        return s->started + timeout > pause ? s->started + timeout : pause;
}

/* Gives the rest of the output up. `earlier` is the signal that has stopped the command. */
static void supervise_give_up(Supervisor *s, int earlier) {
        output_give_up(s->launch->output);
        if (!s->stop_signal && s->stopping)
                s->stop_signal = earlier;
        s->undelivered = s->stop_signal;
        s->timed_out |= !s->undelivered && !output_passed(s->launch->output);
}

/* Delivers the rest of the output. Slow readers get all of it. A signal that would stop the command
 * ends this. */
static void supervise_deliver(Supervisor *s) {
        struct pollfd fds[1 + OUTPUT_POLL_MAX] = { { .fd = s->signal_fd, .events = POLLIN } };
        Output *output = s->launch->output;
        const int earlier = s->stop_signal;

        s->stop_signal = 0;
        s->oom_due = s->look_at = 0; /* No process is left to watch. */
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
        POLL_NETWORK,
        POLL_GATEWAY,
        POLL_ASKING,
        POLL_TERMINAL,
        POLL_MAX = POLL_TERMINAL + 3 + OUTPUT_POLL_MAX
};

/* Whether the command's output must be passed on before the next question is shown, because the
 * command printed it earlier. A command that never stops printing cannot put its questions off for
 * long. */
static bool supervise_prints(Supervisor *s, const struct pollfd *fds, size_t count) {
        bool prints = false;

        for (size_t i = 0; i < count; i++)
                prints = prints || fds[i].revents;
        s->put_off = s->asking && prints && s->put_off < PUT_OFF_MAX ? s->put_off + 1 : 0;
        return s->put_off > 0;
}

static void supervise_answer(Supervisor *s) {
        (void)denials_answer(s->denials, s->sandbox->listener_fd,
                             s->launch->plan->exit_tracer ? &s->sandbox->tracer : NULL);
}

/* Runs until init is gone. Its last message may be read before or after its end shows. */
static void supervise_loop(Supervisor *s) {
        struct pollfd fds[POLL_MAX] = {
                [POLL_CONTROL] = { .fd = s->sandbox->control_fd, .events = POLLIN },
                [POLL_INIT] = { .fd = s->sandbox->pidfd, .events = POLLIN },
                [POLL_SIGNAL] = { .fd = s->signal_fd, .events = POLLIN },
                [POLL_LISTENER] = { .fd = s->sandbox->listener_fd, .events = POLLIN },
                [POLL_NETWORK] = { .fd = s->sandbox->network.control_fd, .events = POLLIN },
                [POLL_GATEWAY] = { .fd = s->sandbox->gateway.control_fd, .events = POLLIN },
        };

        for (;;) {
                const bool passes = s->terminal && !asking_shown(s->asking);
                size_t more = passes ? terminal_poll(s->terminal, fds + POLL_TERMINAL) : 0;
                struct pollfd *output = fds + POLL_TERMINAL + more;
                size_t count = POLL_TERMINAL + more + output_poll(s->launch->output, output);

                fds[POLL_ASKING] = (struct pollfd){ .fd = asking_fd(s->asking), .events = POLLIN };
                if (poll(fds, count, poll_timeout(s)) < 0 && errno != EINTR)
                        return kill_all(s);
                if (fds[POLL_LISTENER].revents & POLLIN)
                        supervise_answer(s);
                else if (fds[POLL_LISTENER].revents)
                        fds[POLL_LISTENER].fd = -1; /* No process is left that could make a call. */
                if (fds[POLL_NETWORK].revents && !supervise_prints(s, fds + POLL_TERMINAL, more)) {
                        network_read(&s->sandbox->network, asking_on_event, s->asking);
                        fds[POLL_NETWORK].fd = s->sandbox->network.control_fd;
                }
                if (fds[POLL_GATEWAY].revents) {
                        gateway_read(&s->sandbox->gateway, NULL, NULL);
                        fds[POLL_GATEWAY].fd = s->sandbox->gateway.control_fd;
                }
                if (fds[POLL_ASKING].revents)
                        asking_pump(s->asking, supervise_interrupt, s);
                if (passes && !asking_shown(s->asking))
                        terminal_pump(s->terminal, fds + POLL_TERMINAL, more);
                (void)output_pump(s->launch->output, output);
                if (fds[POLL_CONTROL].revents && !read_control(s))
                        fds[POLL_CONTROL].fd = -1;
                if (fds[POLL_SIGNAL].revents)
                        read_signals(s);
                if (fds[POLL_INIT].revents)
                        return network_end(&s->sandbox->network);
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

/* Only the cgroup's counter is used as proof. If another process killed the command while the OOM
 * killer ended a different one, nobody can tell the difference. */
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

/* Adds the output's result. If writing to the caller's file failed, for example on a full disk, the
 * cause stays. The exit code is holt's own then. */
static int supervise_fill_output(Outcome *out, const Output *output, Error *reterr) {
        int r = output_failure(output, reterr);

        output_count(output, &out->output, &out->output_dropped);
        if (r < 0)
                out->exit_code = error_exit_code(reterr);
        return r;
}

/* Finds the refused paths of a command that has failed, and the limits that it reached. */
static void supervise_explain(const Supervisor *s, Outcome *out) {
        const LaunchPlan *plan = s->launch->plan;
        const Tail *last = s->printed.length > 0 ? &s->printed : output_last(s->launch->output);

        const char *const *argv = (const char *const *)plan->argv.items;
        const char *text = last ? last->data : NULL;
        const size_t length = last ? last->length : 0;

        if (out->exit_code == 0)
                return;
        out->refusals = refused_find(s->launch, plan->cwd, plan->cwd_here, text, length, argv, argv,
                                     FD_NONE);
        out->symptoms = (Symptoms){
                .limits_hit = limits_hit_find(plan, text, length,
                                              plan->inside_fd ? *plan->inside_fd : FD_NONE,
                                              &out->oom_kills, out->signal),
                .network_missed = network_words_missed(plan->network, text, length) &&
                                  !(plan->network == NETWORK_ALLOW && out->net_denials),
        };
        out->said = text ? strndup(text, length) : NULL;
        out->said_length = out->said ? strlen(out->said) : 0;
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
        s->asking = asking_free(s->asking);
        if (s->terminal) {
                terminal_drain(s->terminal);
                if (terminal_interrupted(s->terminal))
                        s->interrupt = INTERRUPT_KEY;
                s->terminal = terminal_free(s->terminal);
        }
        network_stop(&s->sandbox->network, NULL, NULL);
        gateway_stop(&s->sandbox->gateway, NULL, NULL);
        out->gateway_lost = s->sandbox->gateway.lost;
        out->gateway_denials = TAKE_PTR(s->sandbox->gateway.denials);
        out->network_level = s->sandbox->network.level;
        out->network_lost = s->sandbox->network.lost;
        out->net_denials = TAKE_PTR(s->sandbox->network.denials);
        supervise_deliver(s);
        out->interrupt = s->interrupt;
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
        supervise_explain(s, out);
        return supervise_fill_output(out, s->launch->output, reterr);
}

static int supervise_take_terminal(Supervisor *s, Error *reterr) {
        if (s->sandbox->terminal_fd < 0)
                return 0;
        s->terminal = terminal_new(&s->launch->terminal, s->sandbox->terminal_fd,
                                   output_budget(s->launch->output));
        if (!s->terminal)
                return error_oom(reterr);
        if (s->launch->terminal.fds & 4)
                terminal_keep(s->terminal, &s->printed);
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
        if (launch->plan->timeout)
                set_deadline(&s, s.started + launch->plan->timeout);
        if (r == 0)
                r = supervise_take_terminal(&s, reterr);
        if (r == 0 && launch->plan->net_ask)
                s.asking = asking_new(&sandbox->network);
        if (r == 0) {
                supervise_loop(&s);
                r = supervise_finish(&s, ret, reterr);
        }
        fd_close(s.signal_fd);
        return r;
}
