/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines for the keeper itself: to be ready, and to end.
 *
 * Theory of operation. A kernel timer sends SIGALRM, which is never blocked and has its default
 * action. So nothing can hold the keeper up: no sandbox that does not end, no locked database, no
 * disk that does not answer. The keeper then ends as by kill -9. Its sandbox dies with it
 * (PR_SET_PDEATHSIG), and the next keeper finds the session as after a crash.
 *
 * SIGTERM has a handler, because a blocked loop reads no signalfd. The handler starts the timer,
 * and sends SIGHUP, which the loop reads as soon as it can. */
#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "keeper/keeper.h"

static uint64_t terminate_time; /* usec */

static uint64_t time_left(void) {
        struct itimerval now = { 0 };

        (void)getitimer(ITIMER_REAL, &now);
        return (uint64_t)now.it_value.tv_sec * 1000000 + (uint64_t)now.it_value.tv_usec;
}

static void set_timer(uint64_t usec) {
        const struct itimerval value = { .it_value = { .tv_sec = (time_t)(usec / 1000000),
                                                       .tv_usec = (long)(usec % 1000000) } };

        (void)setitimer(ITIMER_REAL, &value, NULL);
}

void keeper_end_within(uint64_t usec) {
        const uint64_t left = time_left();

        if (!left || usec < left)
                set_timer(usec);
}

void keeper_end_never(void) {
        set_timer(0);
}

static void on_terminate(int signal) {
        const int errnum = errno;

        (void)signal;
        keeper_end_within(terminate_time);
        (void)kill(getpid(), SIGHUP);
        errno = errnum;
}

void keeper_take_terminate(uint64_t usec) {
        const struct sigaction action = { .sa_handler = on_terminate, .sa_flags = SA_RESTART };
        sigset_t set;

        terminate_time = usec;
        (void)sigaction(SIGTERM, &action, NULL);
        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGTERM);
        (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}
