/* SPDX-License-Identifier: Apache-2.0 */
/* Syscall sets -> BPF.
 *
 * Theory of operation. Every system call of the native ABI has an action: allowed, allowed when an argument
 * check passes, refused with EPERM or ENOSYS in the filter, or refused and reported (seccomp user
 * notification, answered by the launcher). A call that no group names is unknown and gets ENOSYS, so that a
 * libc falls back as on an older kernel. Foreign ABIs (int 0x80, x32) are killed.
 *
 * The program is a binary search over runs of numbers with the same action: a few dozen instructions, and no
 * argument is looked at for a hot call, so that the kernel's bitmap cache (5.11) answers it without running
 * the program. Programs of the presets are made at build time; one with --allow-syscall or --deny-syscall is
 * compiled at start by the same code. */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"

enum { SYSCALLS_PROGRAM_MAX = 1024 }; /* instructions; the kernel takes 4096 */

typedef struct SyscallProgram {
        const struct sock_filter *filter;
        unsigned short len;
} SyscallProgram;

/* The built-in program of a SyscallPreset (policy.h), for a kernel or host with user notification, or
 * without: then what would be reported is refused in the filter with the same errno. Static storage. */
SyscallProgram syscalls_builtin(unsigned preset, bool notify);

/* Compiles preset + allow - deny (names of calls or "@group") into out[max].
 * 0, -EINVAL (unknown name: the error says which and where to find the list), -E2BIG. */
int syscalls_compile(unsigned preset, bool notify, const StrList *allow, const StrList *deny,
                     struct sock_filter *out, size_t max, unsigned short *ret_len, Error *reterr);

/* 0, or -EINVAL with why, for a name in syscalls.allow or .deny; a policy is refused by it at parse time. */
int syscalls_name_check(const char *name, const char **ret_why);

/* The name of native call nr, or NULL. */
const char *syscall_name(unsigned nr);

/* The errno (positive) that a reported call is answered with: EPERM, or ENOSYS. */
int syscall_refusal(unsigned nr);

/* For listings: the group that a call is in ("@mount"), or NULL for an unknown one. */
const char *syscall_group(unsigned nr);
