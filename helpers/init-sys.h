/* SPDX-License-Identifier: Apache-2.0 */
/* The entry point and vfork for init and holt-tool, which link no libc. */
#pragma once

#include "raw-call.h"
#include "raw-clone.h"

#define AT_FDCWD_VALUE (-100)
#define SFD_CLOEXEC_VALUE 02000000

#if defined(__x86_64__)

__asm__(".globl _start\n"
        "_start:\n"
        "       xor %ebp, %ebp\n"
        "       mov %rsp, %rdi\n"
        "       and $-16, %rsp\n"
        "       call init_main\n"
        "       ud2\n");

#elif defined(__aarch64__)

__asm__(".globl _start\n"
        "_start:\n"
        "       mov x29, xzr\n"
        "       mov x30, xzr\n"
        "       mov x0, sp\n"
        "       bl init_main\n"
        "       brk 1\n");

#else
#error "holt is written for x86_64 and aarch64"
#endif

/* Starts a process that shares only the memory, on a stack of its own. fn does not return. */
static inline long sys_spawn(void *stack_top, void (*fn)(void *), void *arg) {
        return raw_clone(__NR_clone, CLONE_VM | SIGCHLD, (long)stack_top, 0, 0, 0, fn, arg);
}

/* vfork onto a separate stack: returns in the parent after the child has executed or exited. fn
 * does not return. */
static inline long sys_vfork(void *stack_top, void (*fn)(void *), void *arg) {
        return raw_clone(__NR_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, (long)stack_top, 0, 0, 0, fn,
                         arg);
}
