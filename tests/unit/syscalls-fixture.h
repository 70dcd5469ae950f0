/* SPDX-License-Identifier: Apache-2.0 */
/* Runs filter programs as the kernel would, and says what they should answer by the tables. */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <linux/audit.h>
#include <linux/seccomp.h>

#include "policy/syscalls-table.h"

#ifndef SECCOMP_RET_USER_NOTIF
#define SECCOMP_RET_USER_NOTIF 0x7fc00000U
#endif

#define HIGH (1ULL << 32)

#define FOREACH_BUILTIN(preset, notify)                                                            \
        for (unsigned preset = 0; preset < SYSCALLS_PRESET_MAX; preset++)                          \
                for (unsigned notify = 0; notify < 2; notify++)

typedef struct Outcome {
        uint32_t value; /* SECCOMP_RET_* */
        bool looked_at_arguments;
        unsigned steps; /* instructions that were carried out */
} Outcome;

/* Fails the test where the program is not one that the kernel would take. */
Outcome interpret(SyscallProgram program, const struct seccomp_data *data);
/* Runs it for a native call with its first four arguments. */
Outcome run_with(SyscallProgram program, int nr, const uint64_t args[4]);
/* The same with three; the fourth is 0. */
Outcome run(SyscallProgram program, int nr, uint64_t a, uint64_t b, uint64_t c);

/* -1 where this architecture has no such call. */
int number_of(const char *name);
/* NULL where the tables have no such number. */
const SyscallRow *row_of(int nr);

/* Every number, with samples of arguments, against the tables; either list may be NULL. */
void assert_program(SyscallProgram program, unsigned preset, bool notify, const StrList *allow,
                    const StrList *deny);

/* How tests write an answer down: ALLOWED, or an errno, or one that is REPORTED. */
enum { ALLOWED = 0, REPORTED = 1 << 16 };

/* What the program returns for it. */
uint32_t return_value(int answer, bool notify);
