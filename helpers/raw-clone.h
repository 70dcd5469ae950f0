/* SPDX-License-Identifier: Apache-2.0 */
/* clone(2) and clone3(2) with a separate stack for the child, for init and for the launcher.
 *
 * A child on another stack cannot return through a libc wrapper, because the return address is on
 * the parent's stack. So this file contains the instruction itself, followed by the call of fn.
 * Registers hold all that the child needs. */
#pragma once

/* nr is the system call, and a to e are its arguments. Returns only in the parent: the child's pid
 * or a negative errno. The child runs fn(arg), which must not return. */
#if defined(__x86_64__)

static inline long raw_clone(long nr, long a, long b, long c, long d, long e, void (*fn)(void *),
                             void *arg) {
        register long r10 __asm__("r10") = d;
        register long r8 __asm__("r8") = e;
        register void (*r12)(void *) __asm__("r12") = fn;
        register void *r13 __asm__("r13") = arg;
        long ret;

        __asm__ volatile("syscall\n"
                         "test %%rax, %%rax\n"
                         "jnz 1f\n"
                         "xor %%ebp, %%ebp\n"
                         "mov %%r13, %%rdi\n"
                         "call *%%r12\n"
                         "ud2\n"
                         "1:\n"
                         : "=a"(ret)
                         : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r12), "r"(r13)
                         : "rcx", "r11", "memory", "cc");
        return ret;
}

#elif defined(__aarch64__)

static inline long raw_clone(long nr, long a, long b, long c, long d, long e, void (*fn)(void *),
                             void *arg) {
        register long x8 __asm__("x8") = nr;
        register long x0 __asm__("x0") = a;
        register long x1 __asm__("x1") = b;
        register long x2 __asm__("x2") = c;
        register long x3 __asm__("x3") = d;
        register long x4 __asm__("x4") = e;
        register void (*x19)(void *) __asm__("x19") = fn;
        register void *x20 __asm__("x20") = arg;

        __asm__ volatile("svc 0\n"
                         "cbnz x0, 1f\n"
                         "mov x29, xzr\n"
                         "mov x0, x20\n"
                         "blr x19\n"
                         "brk 1\n"
                         "1:\n"
                         : "+r"(x0)
                         : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x19), "r"(x20)
                         : "x30", "memory", "cc");
        return x0;
}

#else
#error "holt is written for x86_64 and aarch64"
#endif
