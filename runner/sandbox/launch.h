/* SPDX-License-Identifier: Apache-2.0 */
/* From a plan to a live sandbox.
 *
 * Theory of operation. launch_prepare() opens every host path of the plan, once, and finds out who
 * the command will be. launch_start() makes the sandbox with one clone3(2), but for its network,
 * which a thread of the child makes meanwhile (build-network.c). The child shares the launcher's
 * memory and suspends it (CLONE_VM | CLONE_VFORK): no page table is copied, its error needs no
 * pipe, and all it may do is walk the Launch. It builds the file tree (build.c), confines itself
 * (confine.c) and executes init from a sealed memory file, which ends the sharing. The launcher
 * then supervises (supervise.c). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "child/child.h"

/* A live sandbox. */
typedef struct Sandbox {
        pid_t pid;        /* of init */
        uint64_t started; /* usec of CLOCK_MONOTONIC, when it began to be made */
        int pidfd;
        int control_fd;  /* seqpacket to init (helpers/init-protocol.h) */
        int terminal_fd; /* master of the sandbox's terminal, or FD_NONE */
        int listener_fd; /* seccomp notifications, or FD_NONE */
        int root_fd;     /* O_PATH of a session's root, in its own mount namespace, or FD_NONE */
        int mounts_fd; /* that namespace, or FD_NONE. Held, its mounts outlive the sandbox: what is
                        * written up to the end goes to its place, and not below where they were.
                        * In a single run the Watch, if there is one, has these two */
} Sandbox;

/* Its versions do not agree on this. */
/* clang-format off */
#define SANDBOX_NONE                                                                               \
        {                                                                                          \
                .pidfd = FD_NONE, .control_fd = FD_NONE, .terminal_fd = FD_NONE,                   \
                .listener_fd = FD_NONE, .root_fd = FD_NONE, .mounts_fd = FD_NONE                   \
        }
/* clang-format on */

/* Opens what the plan names. Where holt is run by root, gives up root for good: from here on the
 * process is an unprivileged user. From here on every signal is blocked. plan is borrowed and must
 * outlive ret; the caller ends with launch_clear(). */
int launch_prepare(LaunchPlan *plan, Launch *ret, Error *reterr);
void launch_clear(Launch *launch);

/* Starts the sandbox. On failure nothing is left. A layer that the
 * host refuses is an ERROR_LAYER with its cure, unless the plan lets it go (then
 * launch->layers.missing says so). */
int launch_start(Launch *launch, Sandbox *ret, Error *reterr);
/* Kills what is left of the sandbox, and waits seconds at most for its end. */
void sandbox_clear(Sandbox *sandbox);
