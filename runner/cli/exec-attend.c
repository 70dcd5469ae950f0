/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the end of a command in a session. Passes signals, job control and keys on. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/time.h"
#include "cli/exec-internal.h"
#include "streams/stdio.h"

int exec_open_signals(Exec *exec, Error *reterr) {
        /* Without a terminal, the kernel's own job control applies, so holt handles the own[]
         * signals only with one. */
        static const int passed[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 },
                         own[] = { SIGWINCH, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU };
        sigset_t set;

        (void)sigemptyset(&set);
        for (size_t i = 0; i < ELEMENTSOF(passed); i++)
                (void)sigaddset(&set, passed[i]);
        for (size_t i = 0; i < ELEMENTSOF(own) && exec->plan.fds; i++)
                (void)sigaddset(&set, own[i]);
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        exec->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return exec->signal_fd < 0
                       ? error_set(reterr, ERROR_SETUP, errno, "cannot create a signalfd")
                       : 0;
}

/* Sends a request and returns its id, or 0 if it cannot be sent. The loop notices later that the
 * keeper has gone. */
static uint64_t exec_ask(const Exec *exec, const char *method, const char *signal, bool all) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        uint64_t id = 0;
        Error ignored;

        json_write_object(&w, NULL);
        json_write_string(&w, "id", exec->id);
        if (signal)
                json_write_string(&w, "signal", signal);
        if (all)
                json_write_bool(&w, "all", true);
        json_write_end(&w);
        if (json_write_finish(&w) < 0 ||
            rpc_client_send(exec->client, method, &w, NULL, 0, &id, &ignored) < 0)
                return 0;
        return id;
}

/* Returns whether holt may stop now. After the deadline, the keeper ends the command and holt waits
 * for that. */
static bool exec_may_stop(const Exec *exec) {
        return !exec->deadline || time_now_usec() < exec->deadline;
}

/* Works as in a single run (sandbox/supervise.c). If the command wants the keys and holt has them,
 * the command gets them. Otherwise holt stops, with its whole job and everything that the command
 * has started, until the deadline. Reports of a stop that came before the last process.resume are
 * ignored, including those that holt caused. */
static void exec_command_stopped(Exec *exec, const RpcMessage *message) {
        const uint64_t signal = json_member_uint(message->params, "signal");
        const bool wants_keys = signal == SIGTTIN || signal == SIGTTOU;

        if (!exec->terminal || exec->resuming)
                return;
        if (!wants_keys || !terminal_in_foreground(exec->terminal)) {
                if (!exec_may_stop(exec))
                        return;
                (void)exec_ask(exec, "process.signal", "STOP", true);
                terminal_stop(exec->terminal, 0, wants_keys, &exec->waker);
        }
        if (wants_keys)
                terminal_enter(exec->terminal);
        exec->resuming = exec_ask(exec, "process.resume", NULL, false);
}

/* Handles a signal that concerns the terminal. Returns false if the command must get it instead. */
static bool exec_act_on_signal(const Exec *exec, unsigned signal) {
        if (!exec->terminal)
                return false;
        if (signal == SIGWINCH)
                terminal_resize(exec->terminal);
        else if (signal == SIGCONT && !exec->plan.background)
                terminal_enter(exec->terminal);
        else if (signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU)
                return signal == SIGCONT;
        else if (exec_may_stop(exec))
                terminal_stop(exec->terminal, getpid(), false, &exec->waker);
        return true;
}

/* Handles Ctrl-C at a question, which never reached the command or the rest of the job. */
static void exec_interrupt(void *data) {
        Exec *exec = data;

        if (exec->terminal)
                return terminal_interrupt(exec->terminal);
        exec->interrupt = INTERRUPT_KEY;
        (void)exec_ask(exec, "process.signal", "INT", false);
}

static void exec_pass_signal(Exec *exec) {
        struct signalfd_siginfo info;
        char number[12];

        if (read(exec->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
                return;
        if (exec_act_on_signal(exec, info.ssi_signo))
                return;
        if (info.ssi_signo == SIGINT)
                exec->interrupt = INTERRUPT_SIGNAL;
        (void)snprintf(number, sizeof(number), "%u", info.ssi_signo);
        (void)exec_ask(exec, "process.signal", number, false);
}

/* Returns 1 if the command has ended, 0 if not, or a negative errno. */
static int exec_read_answers(Exec *exec, uint64_t wait_id, Error *reterr) {
        for (;;) {
                _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
                Error error;
                int r = rpc_client_next(exec->client, false, &message, &error);

                if (r == -EAGAIN)
                        return 0;
                if (r < 0 || (!message.result && rpc_message_answers(&message, wait_id))) {
                        *reterr = error;
                        return r < 0 ? r : -EINVAL;
                }
                if (message.method && streq(message.method, "process.stopped"))
                        exec_command_stopped(exec, &message);
                if (message.id == exec->resuming)
                        exec->resuming = 0;
                if (message.id != wait_id) {
                        exec_asking_take(exec->asking, &message);
                        (void)tool_host_take(exec->tools, &message);
                        continue;
                }
                exec->settled = message;
                message = (RpcMessage)RPC_MESSAGE_NONE;
                return 1;
        }
}

static int exec_wait_for_end(Exec *exec, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        uint64_t id;
        int r;

        json_write_object(&w, NULL);
        json_write_string(&w, "id", exec->id);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        r = rpc_client_send(exec->client, "process.wait", &w, NULL, 0, &id, reterr);
        exec->lost = r < 0;
        while (r == 0) {
                struct pollfd fds[4 + 3] = { { .fd = rpc_client_fd(exec->client) },
                                             { .fd = exec->signal_fd, .events = POLLIN },
                                             { .fd = tool_host_fd(exec->tools),
                                               .events = POLLIN } };
                bool passes;
                size_t more;

                r = exec_read_answers(exec, id, reterr);
                exec->lost = r < 0;
                if (r != 0)
                        break;
                fds[0].events = POLLIN;
                if (rpc_client_waits(exec->client))
                        fds[0].events |= POLLOUT;
                fds[3] = (struct pollfd){ .fd = exec_asking_fd(exec->asking), .events = POLLIN };
                passes = exec->terminal && !exec_asking_shown(exec->asking);
                more = passes ? terminal_poll(exec->terminal, fds + 4) : 0;
                if (poll(fds, 4 + more, exec_asking_wait(exec->asking)) < 0 && errno != EINTR)
                        return error_set(reterr, ERROR_SETUP, errno, "cannot wait for the command");
                exec_asking_pump(exec->asking, fds[3].revents != 0, exec_interrupt, exec);
                if (passes)
                        terminal_pump(exec->terminal, fds + 4, more);
                if (fds[0].revents & POLLOUT)
                        (void)rpc_client_flush(exec->client);
                if (fds[2].revents)
                        tool_host_work(exec->tools);
                if (fds[1].revents)
                        exec_pass_signal(exec);
        }
        exec->asking = exec_asking_free(exec->asking);
        if (exec->terminal) {
                terminal_drain(exec->terminal);
                if (terminal_interrupted(exec->terminal))
                        exec->interrupt = INTERRUPT_KEY;
                exec->terminal = terminal_free(exec->terminal);
        }
        return r < 0 ? r : 0;
}

/* Takes the result from the reply to process.spawn if the command was ended before it had
 * started. */
static bool exec_has_ended(Exec *exec, RpcMessage *started) {
        const JsonValue *ended = json_member(started->result, "ended");

        if (!ended)
                return false;
        exec->ended = true;
        exec->settled = *started;
        exec->settled.result = ended;
        *started = (RpcMessage)RPC_MESSAGE_NONE;
        return true;
}

int exec_attend(Exec *exec, RpcMessage *started, Error *reterr) {
        int r;

        if (exec_has_ended(exec, started))
                return 0;
        if (exec->plan.fds && started->fds[0] >= 0) {
                exec->terminal = terminal_new(&exec->plan, started->fds[0], NULL);
                if (!exec->terminal)
                        return error_oom(reterr);
                started->fds[0] = FD_NONE;
                if (exec->plan.fds & 4)
                        terminal_keep(exec->terminal, &exec->printed);
                if (exec->deadline && waker_make(&exec->waker) == 0)
                        waker_set(&exec->waker, exec->deadline);
                if (!exec->plan.background)
                        terminal_enter(exec->terminal);
        }
        r = exec_wait_for_end(exec, reterr);
        stdio_restore(exec->plan.fds);
        return r;
}
