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

/* Thread IDs are smaller (PID_MAX_LIMIT). */
enum { FLAG_STEP = 1 << 24 };

void child_flag_set(ChildThread *thread, uint32_t *flag) {
        __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
        if (thread->running == 0) /* no thread has been started */
                return;
        (void)__atomic_add_fetch(&thread->running, FLAG_STEP, __ATOMIC_ACQ_REL);
        (void)sys3(SYS_futex, (long)&thread->running, FUTEX_WAKE, INT_MAX);
}

bool child_flag_wait(ChildThread *thread, const uint32_t *flag) {
        for (;;) {
                /* The order matters: after this, each change of the flag changes it, too. */
                const uint32_t running = __atomic_load_n(&thread->running, __ATOMIC_ACQUIRE);

                if (__atomic_load_n(flag, __ATOMIC_ACQUIRE))
                        return true;
                if (running == 0)
                        return false;
                (void)sys4(SYS_futex, (long)&thread->running, FUTEX_WAIT, (long)running, 0);
        }
}
