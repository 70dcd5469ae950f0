/* SPDX-License-Identifier: Apache-2.0 */
#include "base/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/list.h"

struct Threads {
        LoopWatch *watch;
        int event_fd; /* owned; signals that a thread has finished its work */
        pthread_mutex_t lock;
        pthread_cond_t ended;
        Thread *running;
};

/* --- the thread --- */

static void *thread_run(void *data) {
        const uint64_t one = 1;
        Thread *thread = data;
        Threads *all = thread->all;

        thread->run(thread->data);
        (void)pthread_mutex_lock(&all->lock);
        thread->done = true;
        (void)pthread_cond_broadcast(&all->ended);
        (void)pthread_mutex_unlock(&all->lock);
        (void)!write(all->event_fd, &one, sizeof(one));
        return NULL;
}

int thread_start(Threads *all, Thread *thread) {
        pthread_attr_t attributes;
        int r = pthread_attr_init(&attributes);

        thread->all = all;
        thread->done = false;
        if (r == 0)
                r = pthread_attr_setstacksize(&attributes, thread->stack_size);
        if (r == 0)
                r = pthread_create(&thread->id, &attributes, thread_run, thread);
        (void)pthread_attr_destroy(&attributes);
        if (r != 0)
                return -r;
        list_push(&all->running, thread);
        return 0;
}

/* --- the loop's side --- */

static void thread_end(Thread *thread) {
        (void)pthread_join(thread->id, NULL);
        (void)list_remove(&thread->all->running, thread);
        thread->finish(thread->data);
}

static Thread *find_done(Threads *all) {
        Thread *thread = all->running;

        (void)pthread_mutex_lock(&all->lock);
        while (thread && !thread->done)
                thread = thread->next;
        (void)pthread_mutex_unlock(&all->lock);
        return thread;
}

static void thread_on_event(void *data, uint32_t events) {
        Threads *all = data;
        Thread *thread;
        uint64_t count;

        (void)events;
        (void)!read(all->event_fd, &count, sizeof(count));
        while ((thread = find_done(all)))
                thread_end(thread);
}

bool thread_wait(Thread *thread, uint64_t until) {
        const struct timespec then = { .tv_sec = (time_t)(until / 1000000),
                                       .tv_nsec = (long)(until % 1000000) * 1000 };
        Threads *all = thread->all;
        bool done;
        int r = 0;

        (void)pthread_mutex_lock(&all->lock);
        while (!thread->done && r == 0)
                r = pthread_cond_timedwait(&all->ended, &all->lock, &then);
        done = thread->done;
        (void)pthread_mutex_unlock(&all->lock);
        if (done)
                thread_end(thread);
        return done;
}

/* --- all of them --- */

int threads_new(Loop *loop, Threads **ret, Error *reterr) {
        Threads *all = calloc(1, sizeof(*all));
        pthread_condattr_t attributes;
        int r;

        if (!all)
                return error_oom(reterr);
        (void)pthread_mutex_init(&all->lock, NULL);
        (void)pthread_condattr_init(&attributes);
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        (void)pthread_cond_init(&all->ended, &attributes);
        (void)pthread_condattr_destroy(&attributes);
        all->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        r = all->event_fd < 0 ? error_set(reterr, ERROR_SETUP, errno, "cannot create an eventfd")
                              : loop_watch(loop, all->event_fd, EPOLLIN, thread_on_event, all,
                                           &all->watch, reterr);
        if (r < 0)
                (void)threads_free(all);
        else
                *ret = all;
        return r;
}

Threads *threads_free(Threads *all) {
        if (!all)
                return NULL;
        (void)loop_unwatch(all->watch);
        if (all->running)
                return NULL;
        fd_close(all->event_fd);
        (void)pthread_cond_destroy(&all->ended);
        (void)pthread_mutex_destroy(&all->lock);
        free(all);
        return NULL;
}
