/* SPDX-License-Identifier: Apache-2.0 */
#include "base/loop.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>

enum { EVENTS_MAX = 64 }; /* per epoll_wait(2) */

struct LoopWatch {
        Loop *loop;
        LoopWatch *previous, *next;
        int fd;
        uint32_t events;
        LoopWatchFn fn; /* NULL after loop_unwatch() */
        void *data;
};

/* Sorted by time; timers that are not set come last. */
typedef struct TimerList {
        LoopTimer *first, *last;
} TimerList;

struct LoopTimer {
        Loop *loop;
        TimerList *list; /* the list that contains the timer, always one of its loop's */
        LoopTimer *previous, *next;
        uint64_t at;
        LoopTimerFn fn;
        void *data;
};

struct Loop {
        int epoll_fd;
        bool running, stopped;
        LoopWatch *watches;
        /* Watches that were removed while events were being delivered; the current batch of events
         * may still refer to them. */
        LoopWatch *gone;
        TimerList timers;
        TimerList due; /* timers that have expired and whose functions are being called */
};

/* --- watches --- */

static void watch_push(LoopWatch **list, LoopWatch *watch) {
        watch->previous = NULL;
        watch->next = *list;
        if (watch->next)
                watch->next->previous = watch;
        *list = watch;
}

static void watch_unlink(LoopWatch **list, LoopWatch *watch) {
        if (watch->previous)
                watch->previous->next = watch->next;
        else
                *list = watch->next;
        if (watch->next)
                watch->next->previous = watch->previous;
}

static void free_gone(Loop *loop) {
        while (loop->gone) {
                LoopWatch *watch = loop->gone;

                watch_unlink(&loop->gone, watch);
                free(watch);
        }
}

static int watch_control(const LoopWatch *watch, int operation) {
        struct epoll_event event = { .events = watch->events, .data.ptr = (void *)watch };

        return epoll_ctl(watch->loop->epoll_fd, operation, watch->fd, &event) < 0 ? -errno : 0;
}

int loop_watch(Loop *loop, int fd, uint32_t events, LoopWatchFn fn, void *data, LoopWatch **ret,
               Error *reterr) {
        LoopWatch *watch = malloc(sizeof(*watch));
        int r;

        if (!watch)
                return error_oom(reterr);
        *watch = (LoopWatch){ .loop = loop, .fd = fd, .events = events, .fn = fn, .data = data };
        r = watch_control(watch, EPOLL_CTL_ADD);
        if (r < 0) {
                free(watch);
                return error_set(reterr, ERROR_SETUP, -r, "cannot wait for file descriptor %d", fd);
        }
        watch_push(&loop->watches, watch);
        *ret = watch;
        return 0;
}

void loop_watch_set(LoopWatch *watch, uint32_t events) {
        int r;

        if (watch->events == events)
                return;
        watch->events = events;
        r = watch_control(watch, EPOLL_CTL_MOD);
        assert(r == 0);
        (void)r;
}

LoopWatch *loop_unwatch(LoopWatch *watch) {
        if (watch)
                (void)watch_control(watch, EPOLL_CTL_DEL);
        return loop_forget(watch);
}

LoopWatch *loop_forget(LoopWatch *watch) {
        Loop *loop;

        if (!watch)
                return NULL;
        loop = watch->loop;
        watch_unlink(&loop->watches, watch);
        watch->fn = NULL;
        if (loop->running)
                watch_push(&loop->gone, watch);
        else
                free(watch);
        return NULL;
}

/* --- timers --- */

static uint64_t timer_order(const LoopTimer *timer) {
        return timer->at ? timer->at : UINT64_MAX;
}

static void timer_unlink(LoopTimer *timer) {
        TimerList *list = timer->list;

        if (timer->previous)
                timer->previous->next = timer->next;
        else
                list->first = timer->next;
        if (timer->next)
                timer->next->previous = timer->previous;
        else
                list->last = timer->previous;
}

/* Inserts the timer after those of the same time. Few timers are set, so a linear search is fast
 * enough. */
static void timer_link(TimerList *list, LoopTimer *timer) {
        LoopTimer *after = timer->at ? list->first : NULL;

        while (after && timer_order(after) <= timer->at)
                after = after->next;
        timer->list = list;
        timer->next = after;
        timer->previous = after ? after->previous : list->last;
        if (timer->previous)
                timer->previous->next = timer;
        else
                list->first = timer;
        if (after)
                after->previous = timer;
        else
                list->last = timer;
}

int loop_timer_new(Loop *loop, LoopTimerFn fn, void *data, LoopTimer **ret, Error *reterr) {
        LoopTimer *timer = malloc(sizeof(*timer));

        if (!timer)
                return error_oom(reterr);
        *timer = (LoopTimer){ .loop = loop, .fn = fn, .data = data };
        timer_link(&loop->timers, timer);
        *ret = timer;
        return 0;
}

void loop_timer_set(LoopTimer *timer, uint64_t at) {
        timer_unlink(timer);
        timer->at = at;
        timer_link(&timer->loop->timers, timer);
}

LoopTimer *loop_timer_free(LoopTimer *timer) {
        if (!timer)
                return NULL;
        timer_unlink(timer);
        free(timer);
        return NULL;
}

/* A timer that a callback sets to a past time waits for the next turn, so that fds get their turn
 * in between. */
static void run_timers(Loop *loop) {
        uint64_t now = time_now_usec();
        LoopTimer *timer;

        while ((timer = loop->timers.first) && timer_order(timer) <= now) {
                timer_unlink(timer);
                timer_link(&loop->due, timer);
        }
        while ((timer = loop->due.first)) {
                loop_timer_set(timer, 0);
                timer->fn(timer->data);
        }
}

/* The timeout for epoll_wait(2) in msec, rounded up: a timer is never early. */
static int next_timeout(const Loop *loop) {
        const LoopTimer *timer = loop->timers.first;
        uint64_t now, left;

        if (!timer || !timer->at)
                return -1;
        now = time_now_usec();
        left = timer->at > now ? (timer->at - now + 999) / 1000 : 0;
        return left > INT_MAX ? INT_MAX : (int)left;
}

/* --- the loop --- */

int loop_new(Loop **ret, Error *reterr) {
        Loop *loop = calloc(1, sizeof(*loop));

        if (!loop)
                return error_oom(reterr);
        loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (loop->epoll_fd < 0) {
                int errnum = errno;

                free(loop);
                return error_set(reterr, ERROR_SETUP, errnum, "cannot create an epoll instance");
        }
        *ret = loop;
        return 0;
}

Loop *loop_free(Loop *loop) {
        if (!loop)
                return NULL;
        assert(!loop->running);
        while (loop->watches)
                (void)loop_unwatch(loop->watches);
        while (loop->timers.first)
                (void)loop_timer_free(loop->timers.first);
        (void)fd_close(loop->epoll_fd);
        free(loop);
        return NULL;
}

/* The callback of one watch may have removed or changed another one. After loop_stop() no further
 * event is delivered. */
static void hand_out(const Loop *loop, const struct epoll_event *events, int count) {
        for (int i = 0; i < count && !loop->stopped; i++) {
                const LoopWatch *watch = events[i].data.ptr;
                uint32_t wanted = events[i].events & (watch->events | EPOLLHUP | EPOLLERR);

                if (watch->fn && wanted)
                        watch->fn(watch->data, wanted);
        }
}

static int run_turn(Loop *loop) {
        struct epoll_event events[EVENTS_MAX];
        int n = epoll_wait(loop->epoll_fd, events, EVENTS_MAX, next_timeout(loop));

        if (n < 0 && errno != EINTR)
                return -errno;
        hand_out(loop, events, n);
        free_gone(loop);
        if (!loop->stopped)
                run_timers(loop);
        free_gone(loop);
        return 0;
}

int loop_run(Loop *loop) {
        int r = 0;

        assert(!loop->running);
        loop->running = true;
        while (r == 0 && !loop->stopped)
                r = run_turn(loop);
        loop->running = loop->stopped = false;
        return r;
}

void loop_stop(Loop *loop) {
        loop->stopped = true;
}
