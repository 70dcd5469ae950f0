/* SPDX-License-Identifier: Apache-2.0 */
/* clone3(2) as vfork: the child shares this process's memory on a stack of its own, and this
 * process sleeps until the child executes or exits. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Runs fn(arg) in a child with the namespaces of flags (CLONE_NEW*). fn does not return.
 *
 * ret_pidfd  owned by the caller, O_CLOEXEC; may be NULL.
 *
 * The child's pid, or a negative errno of clone3(2), which needs Linux 5.3; where a container's
 * filter answers it with ENOSYS, clone(2) takes its place. */
pid_t clone_vfork(uint64_t flags, void (*fn)(void *), void *arg, int *ret_pidfd);
