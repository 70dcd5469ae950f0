/* SPDX-License-Identifier: Apache-2.0 */
#include "child/clone.h"

#include <errno.h>
#include <string.h>

#include "base/sys.h"
#include "base/util.h"
#include "helpers/raw-clone.h"

enum { CHILD_STACK_SIZE = 256 * 1024 };

/* Only the pages that the child touches take memory. */
static char child_stack[CHILD_STACK_SIZE] __attribute__((aligned(64)));

/* clone(2) takes the arguments tls and child_tid in the other order on x86_64; both are 0 here. */
static long legacy_clone(uint64_t flags, int *pidfd, void (*fn)(void *), void *arg) {
        return raw_clone(SYS_clone, (long)(flags | SIGCHLD),
                         (long)(child_stack + sizeof(child_stack)), (long)pidfd, 0, 0, fn, arg);
}

pid_t clone_vfork(uint64_t flags, void (*fn)(void *), void *arg, int *ret_pidfd) {
        int pidfd = FD_NONE;
        struct clone_args args = {
                .flags = flags | CLONE_VM | CLONE_VFORK | CLONE_PIDFD,
                .pidfd = (uint64_t)(uintptr_t)&pidfd,
                .exit_signal = SIGCHLD,
                .stack = (uint64_t)(uintptr_t)child_stack,
                .stack_size = sizeof(child_stack),
        };
        long pid = raw_clone(SYS_clone3, (long)&args, sizeof(args), 0, 0, 0, fn, arg);

        if (pid == -ENOSYS)
                pid = legacy_clone(args.flags, &pidfd, fn, arg);
        if (pid < 0)
                return (pid_t)pid;
        if (ret_pidfd)
                *ret_pidfd = pidfd;
        else
                fd_close(pidfd);
        return (pid_t)pid;
}
