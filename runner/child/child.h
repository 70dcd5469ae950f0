/* SPDX-License-Identifier: Apache-2.0 */
/* The child, from clone(2) to the execution of init.
 *
 * It shares the memory of the launcher, which sleeps meanwhile, so it must not allocate, log or
 * call a library beyond system calls. It walks a Launch, which the launcher has prepared, builds
 * the file tree (build.c) and confines itself (confine.c). */
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

/* A Launch that holds nothing yet: launch_clear() may have it, and closes no descriptor. */
/* clang-format off */
#define LAUNCH_NONE                                                                                \
        {                                                                                          \
                .init_fd = FD_NONE, .workspace_fd = FD_NONE, .control_fd = FD_NONE,                \
                .terminal = { .output_fd = FD_NONE }                                               \
        }
/* clang-format on */

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
