/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles sets of system calls to BPF.
 *
 * Theory of operation. Every system call of the native ABI has an action. It is allowed, allowed if
 * an argument check passes, refused with an errno in the filter, or refused and reported. Reports
 * use seccomp user notification, and the launcher answers them. A call without a group is unknown
 * and gets ENOSYS, so that a libc falls back like on an older kernel. Foreign ABIs (int 0x80, x32)
 * are killed.
 *
 * The program is a binary search over runs of numbers with the same action, with under 300
 * instructions. For most calls it reads no argument, so the kernel's bitmap cache (5.11)
 * answers them without running the program. Two frequent calls are exceptions: open and openat,
 * because their mode may have set-id bits. They are tested first, which costs some 15 ns a call.
 * The presets' programs are compiled at build time; a program with --allow-syscall or
 * --deny-syscall is compiled at start by the same code.
 *
 * Sources: groups.c has the groups and actions, checks.c the argument checks, and
 * syscalls.c compiles. gen-syscalls.c gets the target's numbers from libseccomp, which holt itself
 * does not link. gen-programs.c makes the built-in programs. */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"

typedef enum SyscallPreset {
        SYSCALLS_DEFAULT,
        SYSCALLS_STRICT,
        SYSCALLS_PRESET_MAX,
} SyscallPreset;

enum {
        SYSCALLS_PROGRAM_MAX = 1024, /* instructions; the kernel accepts 4096 */
        SYSCALLS_ID = 1000,          /* the only uid and gid that a sandbox has */
};

typedef struct SyscallProgram {
        const struct sock_filter *filter;
        unsigned short len;
} SyscallProgram;

/* The built-in program of a SyscallPreset. Without notify, for a kernel or host without
 * user notification, the filter refuses reported calls itself with the same errno. Static storage.
 */
SyscallProgram syscalls_builtin(unsigned preset, bool notify);

/* Compiles preset + allow - deny (names of calls or "@group") into out[max]. deny has the last
 * word. Either list may be NULL.
 *
 * A call that is allowed by its own name has no argument check any more. A call that is allowed by
 * its group keeps the check of the default preset. A denied call is refused and reported, unless it
 * was refused already.
 * @basic cannot be denied, since the launcher's child and init make those calls under the filter.
 * "@namespace" allows new namespaces by clone3 and unshare; "clone" allows them by the older clone.
 *
 * Returns 0, -EINVAL (unknown name, or a denial of @basic: the error says which) or -E2BIG.
 * *ret_len is written only on success, out always. */
int syscalls_compile(unsigned preset, bool notify, const StrList *allow, const StrList *deny,
                     struct sock_filter *out, size_t max, unsigned short *ret_len, Error *reterr);

/* Whether that program checks the arguments of the call with this name, which must exist. Returns
 * false if it allows or refuses every such call, or if a list is wrong. */
bool syscalls_check(unsigned preset, const StrList *allow, const StrList *deny, const char *name);

/* Checks a name in syscalls.allow or .deny when the policy is parsed. Returns 0, or -EINVAL with
 * the reason in *ret_why: text that follows the name in a sentence, valid until the next call.
 * Calls of either architecture are known on both, so that one policy serves both; a call that is
 * missing here has no effect. */
int syscalls_name_check(const char *name, const char **ret_why);

/* The same for a name in syscalls.deny, which must not be @basic or one of its calls. */
int syscalls_deny_check(const char *name, const char **ret_why);

/* The name of native call nr, or NULL. */
const char *syscall_name(unsigned nr);

/* The positive errno that answers a reported call, in every preset and with every list: EPERM or
 * ENOSYS. */
int syscall_refusal(unsigned nr);

/* Whether a reported call would work if the policy allowed its name. It would not if the kernel
 * asks for a capability, which a command has only in a user namespace of its own.
 *
 * allow  the policy's syscalls.allow, which may permit such namespaces. NULL if Landlock is in
 *        force, because it refuses mounts in them anyway. */
bool syscall_grantable(unsigned nr, const StrList *allow);

/* For a name, of a call or "@group": the number of its calls on this architecture, and how many of
 * them are not grantable (syscall_grantable()). */
void syscalls_count(const char *name, const StrList *allow, unsigned *ret_all, unsigned *ret_vain);

/* The argument for which a reported call was refused, if a grant of its name would allow more than
 * was asked. No grant is suggested then. NULL for every other call. */
const char *syscall_refused_argument(unsigned nr);

/* The i-th group for listings ("@mount"); NULL past the last. */
const char *syscalls_group_name(size_t i);

/* The group of a call ("@mount"), or NULL for an unknown call. */
const char *syscall_group(unsigned nr);
