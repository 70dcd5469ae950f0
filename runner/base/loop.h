/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop of one thread: fds by epoll(7), and timers.
 *
 * A callback may add, change and free any watch or timer, including its own. A watch or timer that
 * is freed while events are being delivered gets no more of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/time.h"

typedef struct Loop Loop;
typedef struct LoopWatch LoopWatch;
typedef struct LoopTimer LoopTimer;

/* events: EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR of epoll_wait(2). */
typedef void (*LoopWatchFn)(void *data, uint32_t events);
typedef void (*LoopTimerFn)(void *data);

/* Returns 0, -ENOMEM, or a negative errno of epoll_create1(2). */
int loop_new(Loop **ret, Error *reterr);
/* Frees the loop with its remaining watches and timers. Accepts NULL. Returns NULL. */
Loop *loop_free(Loop *loop);

/* Calls fn for events of fd until loop_unwatch(). The caller keeps owning fd. Returns 0 or a
 * negative errno; it is -EPERM for an fd that epoll(7) refuses, such as a regular file. */
int loop_watch(Loop *loop, int fd, uint32_t events, LoopWatchFn fn, void *data, LoopWatch **ret,
               Error *reterr);
/* Changes the events. With 0, fn is still called for EPOLLHUP and EPOLLERR. */
void loop_watch_set(LoopWatch *watch, uint32_t events);
/* Call it before closing the fd. Accepts NULL. Returns NULL. */
LoopWatch *loop_unwatch(LoopWatch *watch);
/* The same without a system call. The caller must now close the only descriptor of the file in any
 * process: only then does epoll(7) stop watching by itself. */
LoopWatch *loop_forget(LoopWatch *watch);

/* Makes a timer that is not set. Returns 0 or -ENOMEM. */
int loop_timer_new(Loop *loop, LoopTimerFn fn, void *data, LoopTimer **ret, Error *reterr);
/* Calls fn once, at time `at` in usec of time_now_usec() or up to 1 ms later. If that time has
 * passed, it calls fn in the next turn of the loop, after the events of fds. 0 unsets the timer. */
void loop_timer_set(LoopTimer *timer, uint64_t at);
/* Accepts NULL. Returns NULL. */
LoopTimer *loop_timer_free(LoopTimer *timer);

/* Delivers events until loop_stop(), which may have been called before. Returns 0 or a negative
 * errno of epoll_wait(2). Do not call it from a callback. */
int loop_run(Loop *loop);
void loop_stop(Loop *loop);
