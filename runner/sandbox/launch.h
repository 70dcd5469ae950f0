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

#include "base/error.h"
#include "guards/watch.h"
#include "policy/plan.h"
#include "reach/system-tree.h"
#include "streams/output.h"
#include "streams/terminal.h"

/* Who the command is outside. */
typedef struct Identity {
        uid_t uid; /* host ids that "agent" is mapped to */
        gid_t gid;
        bool from_root; /* holt was run by the host's root, and uid is nobody else's */
        bool taken;     /* uid is not the caller's own: holt becomes it before it starts anything */
        bool id_mapped; /* what is mounted read-write shows its owner as agent */
} Identity;

/* What the host gave, for the report. */
typedef struct LayerState {
        int landlock_abi;      /* 0 when Landlock is not in force */
        unsigned missing;      /* LAYER_BITs that the host refused and the caller let go */
        unsigned switched_off; /* LAYER_BITs that the policy has switched off */
} LayerState;

typedef struct Watch Watch; /* guards/watch.h */

typedef struct Launch {
        LaunchPlan *plan;
        Identity identity;
        SystemTree system;
        TerminalPlan terminal;
        Output *output;   /* NULL without a limit of it */
        int init_fd;      /* sealed memory file */
        int workspace_fd; /* O_PATH, for the guards; FD_NONE without a workspace */
        int control_fd;   /* the child's end of the socket pair */
        Watch *watch;     /* of what is guarded or hidden; NULL if that is nothing */
        LayerState layers;
        Error error; /* written by the child; error.text is "" when all went well */
} Launch;

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

/* --- the stages of the child: no allocation, no logging, no library beyond system calls --- */

/* Whether the child hands out its root and its mount namespace. */
static inline bool launch_gives_root(const Launch *launch) {
        return launch->plan->root.source || launch->watch;
}

/* Each step returns 0 or a negative errno with *error set. */
int build_run(Launch *launch, Error *error);
int confine_run(Launch *launch, Error *error);

/* Fds that the child hands to the launcher: listener, terminal, root, mounts. */
enum { LAUNCH_FDS = 4 };

/* State that building leaves to confining. */
typedef struct ChildState {
        mode_t umask;                           /* the caller's */
        int scratch_fd;                         /* the private tmpfs */
        int sources[PLAN_MOUNTS_MAX];           /* detached mounts of the plan's binds */
        int lasting_fd;                         /* detached mount of a session's root */
        int root_fd;                            /* the new root */
        int mounts_fd;                          /* the namespace, to be handed out */
        int writable_fds[PLAN_MOUNTS_MAX + 16]; /* mounts that may be written below */
        size_t writable_count;
        int terminal_fd; /* master, to be handed out */
} ChildState;

extern ChildState child_state;
