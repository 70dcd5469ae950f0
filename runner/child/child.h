/* SPDX-License-Identifier: Apache-2.0 */
/* The child, from clone(2) to the execution of init.
 *
 * It shares the memory of the launcher, which sleeps meanwhile. So it must not allocate, log, or
 * call a library beyond system calls. It builds the file tree (build.c) from a Launch, which the
 * launcher has prepared, and confines itself (confine.c). */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "guards/watch.h"
#include "network/gateway.h"
#include "network/network.h"
#include "policy/plan.h"
#include "reach/system-tree.h"
#include "streams/output.h"
#include "streams/stdio.h"
#include "streams/terminal.h"

/* The command's ids on the host. */
typedef struct Identity {
        uid_t uid; /* The host ids to which "agent" is mapped. */
        gid_t gid;
        bool from_root; /* The host's root has started holt, and no other user has this uid. */
        /* The uid is not the caller's own; holt changes to it before it starts a process. */
        bool taken;
        bool id_mapped; /* Read-write mounts show their owner as agent. */
} Identity;

/* Layers that the host provides, for the report. */
typedef struct LayerState {
        int landlock_abi; /* ABI of Landlock; 0 if Landlock is not in force. */
        /* LAYER_BITs that the host refused and the caller allowed to be missing. */
        unsigned missing;
        unsigned switched_off; /* LAYER_BITs that the policy has switched off. */
} LayerState;

/* The names in /sys/devices/system/cpu whose files the sandbox shows. */
enum { SHOWN_PROCESSORS = 3 };
extern const char *const shown_processors[SHOWN_PROCESSORS];

/* The limits and processors that the sandbox shows in /sys. */
typedef struct ShownLimits {
        uint64_t memory;    /* Bytes; 0 means no limit. */
        uint64_t cpu_quota; /* Microseconds in each cpu_period; 0 means no limit. */
        uint64_t cpu_period;
        bool v1;                                /* The host counts memory by cgroup v1. */
        char processors[SHOWN_PROCESSORS][128]; /* The files' contents; "" if unknown. */
} ShownLimits;

typedef struct Launch {
        LaunchPlan *plan;
        Identity identity;
        SystemTree system;
        TerminalPlan terminal;
        Output *output;      /* NULL without a limit of the output. */
        int init_fd;         /* Sealed memory file. */
        int workspace_fd;    /* O_PATH, for the guards; FD_NONE without a workspace. */
        int control_fd;      /* The child's end of the socket pair. */
        Network network;     /* holt-egress, if it was started early; the sandbox then takes it. */
        int setup_fd;        /* The child's socket to holt-egress, or FD_NONE. */
        GatewayLink gateway; /* holt-gateway, until the sandbox takes it. */
        int gateway_fd;      /* The child's socket to holt-gateway, or FD_NONE. */
        bool network_waits;  /* holt-egress sets the network up later, if at all. */
        Watch *watch;        /* The watch of guarded and hidden paths, or NULL. */
        ShownLimits limits;
        LayerState layers;
        char caller_path[PATH_MAX]; /* The caller's PATH, for hints; "" if it is unknown. */
        FdFacts stdio[3];           /* About fds 0 to 2 of the launcher. */
        /* A bit for each of fds 0 to 2 that is a file which the command can open by its path. */
        unsigned stdio_shown;
        bool view;   /* The child only builds the tree and hands it over: no process stays. */
        Error error; /* Written by the child; error.text is "" after success. */
} Launch;

/* An empty Launch: launch_clear() accepts it and closes no descriptor. */
/* clang-format off */
#define LAUNCH_NONE                                                                                \
        {                                                                                          \
                .init_fd = FD_NONE, .workspace_fd = FD_NONE, .control_fd = FD_NONE,                \
                .setup_fd = FD_NONE, .network = NETWORK_CLOSED,                                    \
                .gateway_fd = FD_NONE, .gateway = GATEWAY_CLOSED,                                  \
                .terminal = { .output_fd = FD_NONE }                                               \
        }
/* clang-format on */

/* Whether the child passes its root and its mount namespace to the launcher. */
static inline bool launch_gives_root(const Launch *launch) {
        return launch->plan->root.source || launch->watch;
}

/* Whether the sandbox gets a network namespace. Without one, it shares the host's network. */
static inline bool launch_has_own_network(const Launch *launch) {
        return !((launch->layers.missing | launch->layers.switched_off) & LAYER_BIT(LAYER_NET));
}

/* Each step returns 0 or a negative errno with *error set. */
int build_run(Launch *launch, Error *error);
/* Waits for the end of the thread of build_run(). */
void build_wait(void);
/* Waits for what build_run() has left to a thread, also after a failure. Must come before the exec.
 * Returns the result so far, or the thread's. */
int build_finish(int so_far, Error *error);
/* The same for a plan with an assembly (policy/assembly.h), and the confinement for it. */
int assemble_run(Launch *launch, Error *error);
int assemble_confine(Launch *launch, Error *error);
/* Executes the program, which is looked up in PATH of env, with argv, in front of which a slot is
 * free. Returns only on failure: a negative errno, with "execvp PROGRAM" in *error. */
int assemble_execute(const char *program, const char **argv, const char *const *env, Error *error);
/* Steps of confine_run() and assemble_confine(). */
int confine_keys(Launch *launch, Error *error);
int confine_seccomp(Launch *launch, Error *error);
int confine_run(Launch *launch, Error *error);
/* Whether confine_early() can do a part of confine_run() before the tree is finished. */
bool confine_is_early(const Launch *launch);
/* Drops the capabilities and loads the filter, without the libc. confine_run() reports a failure.
 */
void confine_early(Launch *launch);
/* Hands over the tree of a view, instead of confine_run(). */
int confine_view(Launch *launch, Error *error);

/* Number of fds that the child may pass to the launcher: listener, terminal, root, mounts. */
enum { LAUNCH_FDS = 4 };

/* State that building leaves for confining. */
typedef struct ChildState {
        mode_t umask;                           /* The caller's umask. */
        int scratch_fd;                         /* The private tmpfs. */
        int sources[PLAN_MOUNTS_MAX];           /* Detached mounts of the plan's binds. */
        int lasting_fd;                         /* Detached mount of a session's root. */
        int root_fd;                            /* The new root. */
        int mounts_fd;                          /* The mount namespace, for the launcher. */
        int writable_fds[PLAN_MOUNTS_MAX + 16]; /* Writable mounts, for Landlock. */
        size_t writable_count;
        int terminal_fd; /* The terminal's master, for the launcher. */
        bool early;      /* confine_early() has been called. */
} ChildState;

extern ChildState child_state;
