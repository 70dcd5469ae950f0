/* SPDX-License-Identifier: Apache-2.0 */
/* A second thread of the child, so that two processors share the work of a start.
 *
 * Both threads share memory, files, the working directory and errno. So one of them may use the
 * libc at a time, and the other one makes its system calls without it (helpers/raw-call.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ChildThread {
        /* ID of the thread, plus a step for each flag that it has set. When the thread ends, the
         * kernel sets this to 0 and wakes waiters. */
        uint32_t running;
} ChildThread;

/* Starts a thread that calls run(data) and ends. Returns false if that is impossible: a container
 * may hide clone3(2), or a limit of processes is reached. */
bool child_thread_start(ChildThread *thread, void (*run)(void *data), void *data, char *stack,
                        size_t stack_size);
/* Waits until the thread has ended. Returns at once if none was started. */
void child_thread_wait(ChildThread *thread);

/* A flag that the thread sets. The other function waits for it, and returns false if the thread has
 * ended without setting it: a filter outside holt may kill a single thread. */
void child_flag_set(ChildThread *thread, uint32_t *flag);
bool child_flag_wait(ChildThread *thread, const uint32_t *flag);
