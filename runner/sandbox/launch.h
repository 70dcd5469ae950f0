/* SPDX-License-Identifier: Apache-2.0 */
/* From a plan to a running sandbox.
 *
 * Theory of operation. launch_prepare() opens every host path of the plan once, and chooses the
 * command's identity. launch_start() makes the sandbox with one clone3(2), except for its network,
 * which a thread of the child makes meanwhile (build-network.c).
 *
 * The child shares the launcher's memory and suspends the launcher (CLONE_VM | CLONE_VFORK). So no
 * page table is copied, and the child writes its error into the Launch instead of a pipe. It builds
 * the file tree (build.c), confines itself (confine.c) and executes init from a sealed memory file,
 * which ends the sharing. The launcher then supervises (supervise.c). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "child/child.h"
#include "network/gateway.h"
#include "network/network.h"
#include "outcome/exit-tracer.h"
#include "streams/waker.h"

/* A running sandbox. It owns its fds. */
typedef struct Sandbox {
        pid_t pid;        /* PID of init. */
        uint64_t started; /* Microseconds of CLOCK_MONOTONIC at the start of its making. */
        int pidfd;
        int control_fd;      /* Seqpacket socket to init (helpers/init-protocol.h). */
        int terminal_fd;     /* Master of the sandbox's terminal, or FD_NONE. */
        int listener_fd;     /* Seccomp notifications, or FD_NONE. */
        ExitTracer tracer;   /* The process inside that traces exits. */
        Network network;     /* The host's side of the network, if the policy allows some hosts. */
        GatewayLink gateway; /* The host's side of the routes, if the policy has some. */
        int root_fd; /* O_PATH of a session's root, in its own mount namespace, or FD_NONE. */
        /* The mount namespace, or FD_NONE. While it is open, its mounts outlive the sandbox. So
         * late writes still go to the mounts, and not to the directories under them. In a single
         * run, the Watch owns root_fd and mounts_fd, if one exists. */
        int mounts_fd;
        /* Continues holt at the timeout of a single run. It is set before the command can run,
         * because somebody may stop holt as soon as the command prints. */
        Waker waker;
} Sandbox;

/* Different versions of clang-format disagree on this macro. */
/* clang-format off */
#define SANDBOX_NONE                                                                               \
        {                                                                                          \
                .pidfd = FD_NONE, .control_fd = FD_NONE, .terminal_fd = FD_NONE,                   \
                .listener_fd = FD_NONE, .root_fd = FD_NONE, .mounts_fd = FD_NONE, \
                .network = NETWORK_CLOSED, .gateway = GATEWAY_CLOSED, .tracer = EXIT_TRACER_NONE   \
        }
/* clang-format on */

/* Opens the files that the plan names. If root runs holt, gives root up for good: the process is an
 * unprivileged user from now on. Blocks all signals. plan is borrowed and must outlive ret. stdio
 * is what stdio_open() has told about fds 0 to 2, or NULL. The caller ends with launch_clear().
 * Returns 0 or a negative errno. */
int launch_prepare(LaunchPlan *plan, const FdFacts *stdio, Launch *ret, Error *reterr);
void launch_clear(Launch *launch);

/* Starts the sandbox; on failure, nothing is left. A layer that the host refuses is an ERROR_LAYER
 * with its cure, unless the plan allows it to be missing. Then it is in launch->layers.missing. */
int launch_start(Launch *launch, Sandbox *ret, Error *reterr);
/* Builds only the file tree of the sandbox, in which no process runs: ret has root_fd and
 * mounts_fd. The tree lasts until both are closed. Errors are the same. */
int launch_view(Launch *launch, Sandbox *ret, Error *reterr);
/* Kills the rest of the sandbox, and waits at most a few seconds for its end. */
void sandbox_clear(Sandbox *sandbox);
