/* SPDX-License-Identifier: Apache-2.0 */
/* Other ABIs of the kernel. Each has its own call numbers, so a filter that knows only the native
 * ones misreads them. */
#include "hostile.h"

#include <signal.h>

#ifdef __x86_64__
/* A kernel without the 32-bit ABI answers with a general protection fault. */
static void no_abi(int number) {
        (void)number;
        held("no 32-bit ABI: ENOSYS");
}

/* 20 is getpid in the 32-bit ABI. */
static void int80(char **args) {
        long result = 20;

        (void)args;
        (void)signal(SIGSEGV, no_abi);
        __asm__ volatile("int $0x80" : "+a"(result) : : "r8", "r9", "r10", "r11", "memory");
        if (result == getpid())
                broken("getpid through int 0x80");
        held("%s", errno_name((int)-result));
}

/* keyctl(KEYCTL_GET_KEYRING_ID): 288 is sys_keyctl in the 32-bit ABI, and accept4 in the native
 * one. */
static void int80_confused(char **args) {
        long result = 288;

        (void)args;
        (void)signal(SIGSEGV, no_abi);
        __asm__ volatile("int $0x80" : "+a"(result) : "b"(0), "c"(-3), "d"(1) : "memory");
        if (result >= 0)
                broken("keyctl through int 0x80");
        held("%s", errno_name((int)-result));
}

static void x32(char **args) {
        (void)args;
        reached(syscall(SYS_getpid | 0x40000000));
}

/* x32's own numbers are 512 to 547. Some kernels accepted them without the bit (before 5.4). */
static void x32_gap(char **args) {
        (void)args;
        reached(syscall(521 /* ptrace */ | 0x40000000, 0, 0, 0, 0));
}
#endif

/* The kernel reads only 32 bits of the number. */
static void number_high(char **args) {
        (void)args;
        reached(syscall(SYS_unshare | (long)(1UL << 32), 0x10000000 /* CLONE_NEWUSER */));
}

static const Attack attacks[] = {
#ifdef __x86_64__
        { "int80", int80, 0 },
        { "int80-confused", int80_confused, 0 },
        { "x32", x32, 0 },
        { "x32-gap", x32_gap, 0 },
#endif
        { "number-high-bit", number_high, 0 },
};

int main(int argc, char **argv) {
        return hostile_main(attacks, ELEMENTSOF(attacks), argc, argv);
}
