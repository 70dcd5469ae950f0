/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a sandbox whose tree is an assembly (policy/assembly.h). */
#pragma once

#include "child/child.h"

typedef struct BwrapSandbox {
        pid_t pid; /* the reaper, or the command without one */
        int pidfd;
        int event_fd;     /* the reaper's message (helpers/reaper-protocol.h), or FD_NONE */
        int listener_fd;  /* seccomp notifications, or FD_NONE */
        int report_fd;    /* the caller's, which the monitor leaves open; or FD_NONE */
        uint64_t started; /* microseconds of CLOCK_MONOTONIC */
} BwrapSandbox;

/* Completes the plan's assembly, and starts it. launch has a plan with an assembly, and the layers
 * of a policy, if one applies. The caller closes the fds of *ret. Returns 0 or a negative errno; if
 * the command cannot be executed, the error's text begins with "execvp". */
int bwrap_start(Launch *launch, BwrapSandbox *ret, Error *reterr);
