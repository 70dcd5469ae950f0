/* SPDX-License-Identifier: Apache-2.0 */
/* clone3(2) used like vfork(2). The child shares this process's memory on a stack of its own, and
 * this process sleeps until the child executes a program or exits. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Runs fn(arg) in a child with the namespaces of flags (CLONE_NEW*). fn does not return.
 *
 * ret_pidfd  owned by the caller, O_CLOEXEC; may be NULL.
 *
 * Returns the child's pid, or a negative errno of clone3(2), which needs Linux 5.3. If a
 * container's filter refuses clone3(2) with ENOSYS, clone(2) is used. */
pid_t clone_vfork(uint64_t flags, void (*fn)(void *), void *arg, int *ret_pidfd);
