/* SPDX-License-Identifier: Apache-2.0 */
/* Lets one process of a sandbox trace the exits of others, as strace does.
 *
 * Theory of operation. If a tracer has set PTRACE_O_TRACEEXIT, a killed tracee stops before its
 * end. Only its tracer can continue it, or the tracer's own end; further signals are dropped. So
 * processes that trace each other in a ring could not be killed, and neither init nor holt would
 * ever end. The filter therefore reports every ptrace(2) that sets the option
 * (policy/syscalls/checks.c). holt lets the call continue for one process at a time.
 *
 * A ring needs two tracers, because a process cannot trace its own threads. The next process gets
 * the option when the first one has ended completely, which ends its tracing, too. So it does not
 * matter which process is traced. holt could not know that: PIDs are used again, and the kernel
 * attaches children of a tracee without any call.
 *
 * The kernel uses the arguments that holt has seen. All of them are registers, which nobody can
 * change between the filter and the call. */
#pragma once

#include <linux/seccomp.h>
#include <sys/types.h>

#include "base/util.h"

typedef struct ExitTracer {
        pid_t pid; /* In holt's PID namespace. */
        int pidfd; /* Owned; FD_NONE before the first one. */
} ExitTracer;

/* Different versions of clang-format disagree on this macro. */
/* clang-format off */
#define EXIT_TRACER_NONE { .pidfd = FD_NONE }
/* clang-format on */

/* Continues the call if it sets the option and the caller may be the one tracer. The caller must be
 * the first thread of its process. Needs Linux 5.16; refuses on an older kernel.
 *
 * listener_fd  has reported `call`, which is not answered yet.
 *
 * Returns 1 if the call is answered, 0 if it must be refused, or a negative errno. -ENOENT is
 * harmless: the caller has died meanwhile. */
int exit_tracer_answer(ExitTracer *tracer, int listener_fd, const struct seccomp_notif *call);
