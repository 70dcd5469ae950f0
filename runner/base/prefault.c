/* SPDX-License-Identifier: Apache-2.0 */
#include "base/prefault.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

enum {
        VARIABLES = 32 * 1024, /* Bytes. Larger variables, such as stacks, come after these. */
        STACK = 44 * 1024,     /* Bytes: the depth that a run reaches. */
};

/* From the linker. The segments of the program follow each other without a gap. */
extern const char __executable_start[], __bss_start[], _edata[], _end[];

static void prefault_range(uintptr_t from, uintptr_t to, int how) {
        from &= ~((uintptr_t)getpagesize() - 1);
        (void)madvise((void *)from, to - from, how);
}

void prefault(void) {
        const uintptr_t variables = (uintptr_t)__bss_start, end = (uintptr_t)_end;
        const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

        prefault_range((uintptr_t)__executable_start, (uintptr_t)_edata, MADV_POPULATE_READ);
        prefault_range(variables, end - variables < VARIABLES ? end : variables + VARIABLES,
                       MADV_POPULATE_WRITE);
        prefault_range(here - STACK, here, MADV_POPULATE_WRITE);
}
