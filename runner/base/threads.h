/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for what the keeper's loop would have to wait for, a disk or a pipe.
 *
 * Theory of operation. A thread runs one function on data that are its own for as long, and tells
 * the loop by an eventfd; the loop joins it and goes on with them. It inherits the keeper's filters
 * and its signal mask, and dies with it. */
#pragma once

#include <pthread.h>

#include "base/loop.h"

#define THREAD_FOREVER UINT64_MAX

typedef struct Threads Threads;

/* Part of what is worked on, which lives until finish() has been called or is in it. */
typedef struct Thread {
        void (*run)(void *data);    /* on the thread */
        void (*finish)(void *data); /* on the loop; may start it anew, or free it */
        void *data;
        size_t stack_size; /* bytes; what is not touched costs nothing */

        /* threads.c's own */
        struct Thread *next;
        Threads *all;
        pthread_t id;
        bool done; /* run() has returned; under the lock */
} Thread;

/* 0 or a negative errno. */
int threads_new(Loop *loop, Threads **ret, Error *reterr);
/* Where some run still, what they use of it stays: they go with the process. NULL is legal; returns
 * NULL. */
Threads *threads_free(Threads *all);

/* 0, or a negative errno where there can be no thread: finish() is not called then. */
int thread_start(Threads *all, Thread *thread);
/* Waits until then, by time_now_usec() or THREAD_FOREVER, for one that runs. Whether it has ended,
 * and finish() been called. */
bool thread_wait(Thread *thread, uint64_t until);
