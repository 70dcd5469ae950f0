/* SPDX-License-Identifier: Apache-2.0 */
/* A timer that continues this process.
 *
 * A stopped process keeps no deadline. The kernel ends the stop when it generates SIGCONT, even if
 * that signal is blocked (signal(7)). So the timer's signal is SIGCONT. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct Waker {
        timer_t timer;
        bool made;
        uint64_t at; /* Microseconds of time_now_usec(); 0 means never. */
} Waker;

/* Makes a timer that is not set. SIGCONT must be blocked. Returns 0 or a negative errno of
 * timer_create(2): -EAGAIN if the caller has used up its pending signals (RLIMIT_SIGPENDING). */
int waker_make(Waker *ret);
/* Continues the process at the time `at`, or at once if it has passed, and every 100 ms from then
 * on. Does nothing if no timer was made. */
void waker_set(Waker *waker, uint64_t at);
/* Starts the timer again. A stop signal discards a pending SIGCONT, so call this after each stop
 * signal that the process sends to itself. NULL is legal. */
void waker_repeat(const Waker *waker);
