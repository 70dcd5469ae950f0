/* SPDX-License-Identifier: Apache-2.0 */
/* A timer that continues this process.
 *
 * A stopped process keeps no deadline. The kernel ends the stop when it generates SIGCONT, even if
 * that signal is blocked (signal(7)), so the timer's signal is SIGCONT. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct Waker {
        timer_t timer;
        bool made;
        uint64_t at; /* usec of time_now_usec(); 0 is never */
} Waker;

/* Makes a timer that is not set. SIGCONT must be blocked. 0, or a negative errno of
 * timer_create(2): -EAGAIN if the caller has used up its pending signals (RLIMIT_SIGPENDING). */
int waker_make(Waker *ret);
/* Continues the process at that time, or at once if it has passed, and every 100 ms from then on.
 * Does nothing if no timer was made. */
void waker_set(Waker *waker, uint64_t at);
/* Starts the timer again. A stop signal discards a pending SIGCONT, so this comes after each stop
 * signal that the process sends to itself. NULL is legal. */
void waker_repeat(const Waker *waker);
