/* SPDX-License-Identifier: Apache-2.0 */
/* Runs filter programs like the kernel, and computes the expected answers from the tables. */
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

#include "policy/syscalls/table.h"

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
        unsigned steps; /* number of executed instructions */
} Outcome;

/* Fails the test if the kernel would reject the program. */
Outcome interpret(SyscallProgram program, const struct seccomp_data *data);
/* Runs the program for a native call with its first four arguments. */
Outcome run_with(SyscallProgram program, int nr, const uint64_t args[4]);
/* The same with three; the fourth is 0. */
Outcome run(SyscallProgram program, int nr, uint64_t a, uint64_t b, uint64_t c);

/* Returns -1 if this architecture has no such call. */
int number_of(const char *name);
/* Returns NULL if the tables have no such number. */
const SyscallRow *row_of(int nr);

/* Compares every number, with samples of arguments, with the tables. Either list may be NULL. */
void assert_program(SyscallProgram program, unsigned preset, bool notify, const StrList *allow,
                    const StrList *deny);

/* The notation of answers in tests: ALLOWED, or an errno, which may be marked REPORTED. */
enum { ALLOWED = 0, REPORTED = 1 << 16 };

/* The return value of a program for an answer. */
uint32_t return_value(int answer, bool notify);
