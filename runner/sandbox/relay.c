/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/relay.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

#include "base/error.h"

enum { PATIENCE_NS = 20000000 }; /* that a write may block */

/* --- how much --- */

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

void budget_lose(Budget *b, size_t size) {
        if (b)
                b->lost += size;
}

/* --- one direction --- */

static_assert(sizeof(((Relay *)NULL)->data) > PIPE_BUF, "a packet fits, beside what is held");

bool relay_empty(const Relay *r) {
        return r->start == r->end;
}

/* EIO from a terminal's master means that no slave is open: the sandbox's programs have ended. */
static size_t read_chunk(Relay *r, int fd, char *data, size_t size) {
        ssize_t n = read(fd, data, size);

        r->closed = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
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

/* --- writing to who may have stopped --- */

/* Every other signal is blocked (launch.c), and this one does no more than end a system call. */
static void on_patience(int signal) {
        (void)signal;
}

int patience_make(timer_t *ret) {
        const struct sigaction action = { .sa_handler = on_patience };
        struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };

        if (sigaction(SIGRTMIN, &action, NULL) < 0 ||
            timer_create(CLOCK_MONOTONIC, &event, ret) < 0)
                return -errno;
        return 0;
}

ssize_t patience_write(timer_t patience, int fd, const char *data, size_t size) {
        const struct itimerspec tick = { .it_interval.tv_nsec = PATIENCE_NS,
                                         .it_value.tv_nsec = PATIENCE_NS },
                                off = { 0 };
        sigset_t set;
        ssize_t n;
        int errnum;

        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGRTMIN);
        (void)timer_settime(patience, 0, &tick, NULL);
        (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
        n = write(fd, data, size);
        errnum = errno;
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        (void)timer_settime(patience, 0, &off, NULL);
        errno = errnum;
        return n;
}
