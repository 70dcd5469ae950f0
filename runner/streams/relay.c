/* SPDX-License-Identifier: Apache-2.0 */
#include "streams/relay.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "base/time.h"

enum { PATIENCE_US = 20000 }; /* The longest time that a write may block. */

/* --- budget --- */

bool budget_spent(const Budget *b) {
        return b && b->taken >= b->limit;
}

size_t budget_take(Budget *b, size_t size) {
        size_t kept = size;

        if (!b)
                return size;
        if (b->limit - b->taken < size)
                kept = (size_t)(b->limit - b->taken);
        b->taken += kept;
        b->dropped += size - kept;
        b->passed |= kept < size;
        return kept;
}

/* Counts bytes that were taken but cannot be delivered. budget may be NULL. */
static void budget_lose(Budget *b, size_t size) {
        if (b)
                b->lost += size;
}

/* --- one direction --- */

static_assert(sizeof(((Relay *)NULL)->data) > PIPE_BUF,
              "a packet fits in the buffer after a held carriage return");

bool relay_empty(const Relay *r) {
        return r->start == r->end;
}

/* EIO from a terminal's master means that no slave is open: all programs of the sandbox have
 * ended. */
static size_t read_chunk(Relay *r, int fd, char *data, size_t size) {
        ssize_t n = read(fd, data, size);

        r->closed = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
        if (n > 0 && r->tail)
                tail_add(r->tail, data, (size_t)n);
        return n > 0 ? (size_t)n : 0;
}

static size_t drop_chunk(Relay *r, int fd, Budget *budget) {
        char data[sizeof(r->data)];
        size_t n = read_chunk(r, fd, data, sizeof(data));

        (void)budget_take(budget, n);
        return n;
}

size_t relay_fill(Relay *r, int fd, Budget *budget) {
        size_t n;

        if (relay_empty(r))
                r->start = r->end = 0;
        if (budget_spent(budget))
                return drop_chunk(r, fd, budget);
        n = read_chunk(r, fd, r->data + r->held, sizeof(r->data) - r->held);
        if (n == 0 && !r->closed)
                return 0;
        r->end = r->held + budget_take(budget, n);
        if (r->held)
                r->data[0] = '\r';
        r->held = false;
        return n;
}

bool relay_advance(Relay *r, ssize_t n) {
        if (n > 0)
                r->start += (size_t)n;
        return n >= 0 || errno == EAGAIN || errno == EINTR;
}

void relay_discard(Relay *r, Budget *budget) {
        budget_lose(budget, r->end - r->start);
        r->start = r->end;
}

/* --- writing --- */

size_t pipe_part(const char *data, size_t size) {
        const char *end;

        if (size <= PIPE_BUF)
                return size;
        end = memrchr(data, '\n', PIPE_BUF);
        return end ? (size_t)(end - data) + 1 : PIPE_BUF;
}

/* --- writing to a reader that may have stopped --- */

/* The timer is ITIMER_REAL. A timer of timer_create(2) would take one of the user's pending signals
 * (RLIMIT_SIGPENDING). Any other process of that user, even one in a sandbox, can use these up. A
 * SIGALRM from another process may arrive meanwhile; it is raised again at the end. */
static volatile sig_atomic_t alarm_from_outside;

static bool is_from_outside(const siginfo_t *info) {
        /* SI_USER and similar codes; the timer's signal has SI_KERNEL. */
        return info->si_code <= 0;
}

static void on_alarm(int signal, siginfo_t *info, void *context) {
        (void)signal;
        (void)context;
        if (is_from_outside(info))
                alarm_from_outside = true;
}

static uint64_t usec_of(const struct timeval *time) {
        return (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_usec;
}

/* Restarts the timer that was running before: an alarm(2) of the caller's survives execve(2). */
static void restore_timer(struct itimerval timer, uint64_t started) {
        const uint64_t left = usec_of(&timer.it_value), passed = time_now_usec() - started;
        const uint64_t next = left > passed ? left - passed : 1;

        if (!left)
                return;
        timer.it_value = (struct timeval){ .tv_sec = (time_t)(next / 1000000),
                                           .tv_usec = (suseconds_t)(next % 1000000) };
        (void)setitimer(ITIMER_REAL, &timer, NULL);
}

/* Stops the timer and removes a pending tick. */
static void stop_ticking(const sigset_t *alarm) {
        const struct itimerval off = { 0 };
        const struct timespec now = { 0 };
        siginfo_t info;

        (void)setitimer(ITIMER_REAL, &off, NULL);
        if (sigtimedwait(alarm, &info, &now) == SIGALRM && is_from_outside(&info))
                alarm_from_outside = true;
}

ssize_t patience_write(int fd, const char *data, size_t size) {
        const struct timeval interval = { .tv_usec = PATIENCE_US };
        const struct itimerval tick = { .it_interval = interval, .it_value = interval };
        const struct sigaction action = { .sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO };
        const uint64_t started = time_now_usec();
        struct itimerval old_timer = { 0 };
        struct sigaction old_action;
        sigset_t alarm, old_mask;
        ssize_t n;
        int errnum;

        (void)sigemptyset(&alarm);
        (void)sigaddset(&alarm, SIGALRM);
        alarm_from_outside = false;
        (void)sigaction(SIGALRM, &action, &old_action);
        (void)setitimer(ITIMER_REAL, &tick, &old_timer);
        (void)sigprocmask(SIG_UNBLOCK, &alarm, &old_mask);
        n = write(fd, data, size);
        errnum = errno;
        (void)sigprocmask(SIG_BLOCK, &alarm, NULL);
        stop_ticking(&alarm);
        (void)sigaction(SIGALRM, &old_action, NULL);
        restore_timer(old_timer, started);
        if (alarm_from_outside)
                (void)raise(SIGALRM);
        (void)sigprocmask(SIG_SETMASK, &old_mask, NULL);
        errno = errnum;
        return n;
}
