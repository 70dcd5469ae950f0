/* SPDX-License-Identifier: Apache-2.0 */
/* One thread's event loop: fds by epoll(7), and points in time.
 *
 * A callback may add, change and free any watch or timer, its own too: what is freed while events
 * are being handed out gets none of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/time.h"

typedef struct Loop Loop;
typedef struct LoopWatch LoopWatch;
typedef struct LoopTimer LoopTimer;

/* events: EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR as epoll_wait(2) has them. */
typedef void (*LoopWatchFn)(void *data, uint32_t events);
typedef void (*LoopTimerFn)(void *data);

/* 0, or a negative errno of epoll_create1(2), -ENOMEM. */
int loop_new(Loop **ret, Error *reterr);
/* Watches and timers that are left are freed with it. NULL is legal; returns NULL. */
Loop *loop_free(Loop *loop);

/* Hands events of fd, which stays the caller's, to fn until loop_unwatch(). An fd that epoll(7)
 * does not take, a regular file (EPERM), is -EPERM. 0 or a negative errno. */
int loop_watch(Loop *loop, int fd, uint32_t events, LoopWatchFn fn, void *data, LoopWatch **ret,
               Error *reterr);
/* Other events from now on; 0 for none but EPOLLHUP and EPOLLERR. */
void loop_watch_set(LoopWatch *watch, uint32_t events);
/* Before the fd is closed. NULL is legal; returns NULL. */
LoopWatch *loop_unwatch(LoopWatch *watch);

/* A timer that is not set. 0 or -ENOMEM. */
int loop_timer_new(Loop *loop, LoopTimerFn fn, void *data, LoopTimer **ret, Error *reterr);
/* Calls fn once, at that usec of time_now_usec() or up to 1 ms later; in the next turn of the loop
 * when that has passed, after its fds; 0 takes it back. */
void loop_timer_set(LoopTimer *timer, uint64_t at);
/* NULL is legal; returns NULL. */
LoopTimer *loop_timer_free(LoopTimer *timer);

/* Hands out events until loop_stop(), which may have been called before. 0 or a negative errno of
 * epoll_wait(2). Not from a callback. */
int loop_run(Loop *loop);
void loop_stop(Loop *loop);
