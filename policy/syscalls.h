/* SPDX-License-Identifier: Apache-2.0 */
/* Syscall sets -> BPF.
 *
 * Theory of operation. Every system call of the native ABI has an action: allowed, allowed when an
 * argument check passes, refused with an errno in the filter, or refused and reported (seccomp user
 * notification, answered by the launcher). A call that no group names is unknown and gets ENOSYS,
 * so that a libc falls back as on an older kernel. Foreign ABIs (int 0x80, x32) are killed.
 *
 * The program is a binary search over runs of numbers with the same action: under 300 instructions.
 * No argument of a hot call is looked at, so that the kernel's bitmap cache (5.11) answers it
 * without running the program. open and openat are the exception, since their mode may have set-id
 * bits: they are tested for first, which costs some 15 ns a call. Programs of the presets are made
 * at build time; one with
 * --allow-syscall or --deny-syscall is compiled at start by the same code.
 *
 * Where it is: syscalls-groups.c says which call is in which group with which action,
 * syscalls-checks.c which arguments pass, syscalls.c compiles. gen-syscalls.c makes the numbers of
 * the target architecture, by libseccomp, which holt itself does not link, and gen-programs.c the
 * built-in programs. */
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

/* The built-in program of a SyscallPreset (policy.h), for a kernel or host with user notification,
 * or without: then what would be reported is refused in the filter with the same errno. Static
 * storage. */
SyscallProgram syscalls_builtin(unsigned preset, bool notify);

/* Compiles preset + allow - deny (names of calls or "@group") into out[max]; deny has the last
 * word. Either list may be NULL.
 *
 * Allowed by its own name, a call loses its argument check too; allowed by its group it keeps the
 * default preset's. A denied call is refused and reported, unless it was refused already. @basic
 * can't be denied, since the launcher's child and init make those calls under the filter. To allow
 * "@namespace" is to allow new namespaces by clone3 and unshare; "clone" is for the old call's
 * flags.
 *
 * 0, -EINVAL (unknown name, or a denial of @basic: the error says which), -E2BIG. *ret_len is
 * written only on success, out in any case. */
int syscalls_compile(unsigned preset, bool notify, const StrList *allow, const StrList *deny,
                     struct sock_filter *out, size_t max, unsigned short *ret_len, Error *reterr);

/* 0, or -EINVAL with why, to follow the name in a sentence, for a name in syscalls.allow or .deny;
 * a policy is refused by it at parse time. *ret_why is static and lasts until the next call, since
 * it may have the name that was meant. Calls of either architecture are known on both, so that
 * a policy serves both; what is missing here has no effect. */
int syscalls_name_check(const char *name, const char **ret_why);

/* The same for a name in syscalls.deny, which can't be @basic or of it. */
int syscalls_deny_check(const char *name, const char **ret_why);

/* The name of native call nr, or NULL. */
const char *syscall_name(unsigned nr);

/* The errno (positive) that a reported call is answered with, in every preset and with every list:
 * EPERM, or ENOSYS. */
int syscall_refusal(unsigned nr);

/* Whether to allow a reported call by its name is all that it lacks: not where the kernel asks for
 * a capability, which no command in a sandbox has. In a user namespace of its own a command has
 * some.
 *
 * allow  what the policy allows (syscalls.allow), which may be making such namespaces; NULL where
 *        another layer stops what is done in them. */
bool syscall_grantable(unsigned nr, const StrList *allow);

/* Of the calls that name, of a call or "@group", stands for: how many this architecture has, and
 * how many are not grantable in the sense above. */
void syscalls_count(const char *name, const StrList *allow, unsigned *ret_all, unsigned *ret_vain);

/* What it is of its arguments that a reported call was refused for, where allowing it by its name
 * would give more than it asks for: then there is no grant. NULL for every other call. */
const char *syscall_refused_argument(unsigned nr);

/* For listings: the i-th group ("@mount"), NULL past the last. */
const char *syscalls_group_name(size_t i);

/* The group that a call is in ("@mount"), or NULL for an unknown one. */
const char *syscall_group(unsigned nr);
