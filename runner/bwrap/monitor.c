/* SPDX-License-Identifier: Apache-2.0 */
#include "bwrap/monitor.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/time.h"
#include "helpers/reaper-protocol.h"
#include "policy/assembly.h"

/* --- descriptors --- */

/* Closes what only the command needs, so that readers of its pipes see their end. */
static void monitor_close_others(const Assembly *a, const BwrapSandbox *sandbox) {
        const int kept[] = { sandbox->pidfd, sandbox->event_fd, sandbox->listener_fd, a->status_fd,
                             sandbox->report_fd };
        int from = 3;

        for (;;) {
                int next = -1;

                for (size_t i = 0; i < ELEMENTSOF(kept); i++)
                        if (kept[i] >= from && (next < 0 || kept[i] < next))
                                next = kept[i];
                if (next < 0) {
                        (void)syscall(SYS_close_range, from, ~0U, 0);
                        return;
                }
                if (next > from)
                        (void)syscall(SYS_close_range, from, next - 1, 0);
                from = next + 1;
        }
}

/* --- the end --- */

typedef struct Monitor {
        const LaunchPlan *plan;
        const BwrapSandbox *sandbox;
        BwrapEnd *end;
        uint64_t started, deadline; /* microseconds; deadline 0 means none */
        bool timed_out;
        ExitTracer tracer;
} Monitor;

static void monitor_conclude(const Monitor *m, int status) {
        const Ending ending = { .reported = true, .status = status, .timed_out = m->timed_out };

        outcome_conclude(&m->end->outcome, &ending);
        m->end->outcome.usage.wall_us = time_now_usec() - m->started;
}

/* Waits for the child, which has ended. The status of a killed reaper stands for the command's. */
static int monitor_reap(const Monitor *m, Error *reterr) {
        Usage *usage = &m->end->outcome.usage;
        struct rusage used = { 0 };
        int status = 0;

        while (wait4(m->sandbox->pid, &status, 0, &used) < 0)
                if (errno != EINTR)
                        return error_set(reterr, ERROR_SETUP, errno, "cannot wait for the command");
        monitor_conclude(m, status);
        usage->user_us = (uint64_t)used.ru_utime.tv_sec * 1000000 + (uint64_t)used.ru_utime.tv_usec;
        usage->system_us = (uint64_t)used.ru_stime.tv_sec * 1000000 +
                           (uint64_t)used.ru_stime.tv_usec;
        usage->max_rss = (uint64_t)used.ru_maxrss * 1024;
        return 0;
}

/* Ends every process if the command has a time limit, because those that it left behind would run
 * on without one. */
static void monitor_end_others(const Monitor *m) {
        if (m->plan->timeout)
                (void)sys_pidfd_send_signal(m->sandbox->pidfd, SIGKILL);
}

/* Reads the reaper's message, and forgets event_fd unless more may come. Returns 1 if there is no
 * message. The command can open the pipe in the reaper's /proc/PID/fd, and can write to it or empty
 * it. So this must not wait. */
static int monitor_read(const Monitor *m, int *event_fd, Error *reterr) {
        ReaperMessage message;
        ssize_t n = read(*event_fd, &message, sizeof(message));

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 1;
        *event_fd = FD_NONE;
        if (n != (ssize_t)sizeof(message))
                return 1;
        monitor_end_others(m);
        m->end->started = message.type == REAPER_ENDED;
        if (message.type == REAPER_FAILED)
                return error_set(reterr, ERROR_NOT_FOUND, message.value, "execvp %s",
                                 m->plan->assembly->argv[0]);
        if (message.type == REAPER_REFUSED)
                return error_set(reterr, ERROR_SETUP, message.value,
                                 "cannot load the caller's seccomp program");
        monitor_conclude(m, message.value);
        return 0;
}

/* --- the loop --- */

/* Milliseconds until the deadline, or -1. */
static int monitor_patience(const Monitor *m) {
        const uint64_t now = time_now_usec();

        if (!m->deadline)
                return -1;
        if (now >= m->deadline)
                return 0;
        return m->deadline - now > 3600000000ULL ? 3600000
                                                 : (int)((m->deadline - now + 999) / 1000);
}

static void monitor_check_time(Monitor *m) {
        if (!m->deadline || time_now_usec() < m->deadline)
                return;
        m->timed_out = true;
        m->deadline = 0;
        (void)sys_pidfd_send_signal(m->sandbox->pidfd, SIGKILL);
}

/* In a PID namespace that sandboxes share, each could have a tracer, and these could trace each
 * other. So nobody may trace exits there. */
static void monitor_answer(Monitor *m) {
        const bool alone = m->plan->assembly->namespaces & CLONE_NEWPID;

        (void)denials_answer(&m->end->outcome.denials, m->sandbox->listener_fd,
                             alone && m->plan->exit_tracer ? &m->tracer : NULL);
}

int bwrap_monitor(const LaunchPlan *plan, const BwrapSandbox *sandbox, BwrapEnd *ret,
                  Error *reterr) {
        struct pollfd fds[] = { { .fd = sandbox->event_fd, .events = POLLIN },
                                { .fd = sandbox->pidfd, .events = POLLIN },
                                { .fd = sandbox->listener_fd, .events = POLLIN } };
        Monitor m = { .plan = plan,
                      .sandbox = sandbox,
                      .end = ret,
                      .started = sandbox->started,
                      .tracer = EXIT_TRACER_NONE };

        monitor_close_others(plan->assembly, sandbox);
        ret->started = true;
        if (plan->timeout)
                m.deadline = m.started + plan->timeout;
        for (;;) {
                if (poll(fds, ELEMENTSOF(fds), monitor_patience(&m)) < 0 && errno != EINTR)
                        return error_set(reterr, ERROR_SETUP, errno, "cannot wait for the command");
                if (fds[2].revents & POLLIN)
                        monitor_answer(&m);
                else if (fds[2].revents)
                        fds[2].fd = FD_NONE;
                if (fds[0].revents) {
                        int r = monitor_read(&m, &fds[0].fd, reterr);

                        if (r <= 0)
                                return r;
                }
                if (fds[1].revents)
                        return monitor_reap(&m, reterr);
                monitor_check_time(&m);
        }
}
