/* SPDX-License-Identifier: Apache-2.0 */
#include "streams/waker.h"

#include <errno.h>
#include <signal.h>

int waker_make(Waker *ret) {
        struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT };

        *ret = (Waker){ 0 };
        if (timer_create(CLOCK_MONOTONIC, &event, &ret->timer) < 0)
                return -errno;
        ret->made = true;
        return 0;
}

/* Another process may stop this one again after the timer's time has come. */
enum { AGAIN = 100000000 }; /* Nanoseconds. */

void waker_set(Waker *waker, uint64_t at) {
        if (!waker->made || waker->at == at)
                return;
        waker->at = at;
        waker_repeat(waker);
}

void waker_repeat(const Waker *waker) {
        struct itimerspec when = { .it_interval.tv_nsec = AGAIN };

        if (!waker || !waker->made)
                return;
        when.it_value.tv_sec = (time_t)(waker->at / 1000000);
        when.it_value.tv_nsec = (long)(waker->at % 1000000) * 1000;
        (void)timer_settime(waker->timer, TIMER_ABSTIME, &when, NULL);
}
