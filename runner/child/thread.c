/* SPDX-License-Identifier: Apache-2.0 */
#include "child/thread.h"

#include <linux/futex.h>
#include <linux/sched.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "helpers/raw-call.h"
#include "helpers/raw-clone.h"

typedef struct ThreadStart {
        void (*run)(void *data);
        void *data;
} ThreadStart;

static void thread_main(void *arg) {
        const ThreadStart start = *(const ThreadStart *)arg;

        start.run(start.data);
        (void)sys1(SYS_exit, 0);
        __builtin_unreachable();
}

bool child_thread_start(ChildThread *thread, void (*run)(void *data), void *data, char *stack,
                        size_t stack_size) {
        /* It lies below the thread's stack, because this function may return first. */
        ThreadStart *start = (ThreadStart *)stack;
        struct clone_args args = {
                .flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                         CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID,
                .parent_tid = (uint64_t)(uintptr_t)&thread->running,
                .child_tid = (uint64_t)(uintptr_t)&thread->running,
                .stack = (uint64_t)(uintptr_t)stack,
                .stack_size = stack_size,
        };

        *start = (ThreadStart){ run, data };
        thread->running = 0;
        return raw_clone(SYS_clone3, (long)&args, sizeof(args), 0, 0, 0, thread_main, start) >= 0;
}

void child_thread_wait(ChildThread *thread) {
        uint32_t running;

        while ((running = __atomic_load_n(&thread->running, __ATOMIC_ACQUIRE)))
                (void)sys4(SYS_futex, (long)&thread->running, FUTEX_WAIT, (long)running, 0);
}

void child_flag_set(uint32_t *flag) {
        __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
        (void)sys3(SYS_futex, (long)flag, FUTEX_WAKE, INT_MAX);
}

void child_flag_wait(uint32_t *flag) {
        while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
                (void)sys4(SYS_futex, (long)flag, FUTEX_WAIT, 0, 0);
}
