/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for slow work, such as a disk or a pipe, that must not block the keeper's loop.
 *
 * Theory of operation. A thread runs one function on data that it alone uses during that time. It
 * then notifies the loop by an eventfd; the loop joins the thread and continues with the data. A
 * thread inherits the keeper's filters and signal mask, and dies with the keeper. */
#pragma once

#include <pthread.h>

#include "base/loop.h"

#define THREAD_FOREVER UINT64_MAX

typedef struct Threads Threads;

/* Embed this struct in the data of the work. It must live until finish() has been called, and
 * finish() may free it. */
typedef struct Thread {
        void (*run)(void *data);    /* runs on the thread */
        void (*finish)(void *data); /* runs on the loop; may start the thread again, or free it */
        void *data;
        size_t stack_size; /* bytes; unused pages cost nothing */

        /* only for threads.c */
        struct Thread *next;
        Threads *all;
        pthread_t id;
        bool done; /* run() has returned; protected by the lock */
} Thread;

/* Returns 0 or a negative errno. */
int threads_new(Loop *loop, Threads **ret, Error *reterr);
/* If threads still run, the state that they use is not freed; it ends with the process. Accepts
 * NULL. Returns NULL. */
Threads *threads_free(Threads *all);

/* Returns 0, or a negative errno if no thread can be created. finish() is not called then. */
int thread_start(Threads *all, Thread *thread);
/* Waits for a running thread until the given time_now_usec() or THREAD_FOREVER. Returns whether it
 * has ended and finish() has been called. */
bool thread_wait(Thread *thread, uint64_t until);
