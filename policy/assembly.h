/* SPDX-License-Identifier: Apache-2.0 */
/* A file tree that the caller assembles step by step, in place of the tree of every sandbox
 * (policy/plan.h). "holt bwrap" makes it from bubblewrap's options.
 *
 * The tree begins as an empty tmpfs. The steps run in their order, so a later one covers an earlier
 * one. All strings are borrowed from the caller's arguments. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/util.h"

typedef enum AssemblyKind {
        ASSEMBLY_BIND,      /* source, a path of the host or the descriptor fd, at target */
        ASSEMBLY_LAYER,     /* source, a path of the host, is a layer of the next overlay */
        ASSEMBLY_OVERLAY,   /* the layers, source as the writable one, and the directory work */
        ASSEMBLY_PROC,      /* a new procfs */
        ASSEMBLY_DEV,       /* a small /dev */
        ASSEMBLY_TMPFS,     /* with mode and size */
        ASSEMBLY_MQUEUE,    /* a file system of message queues */
        ASSEMBLY_DIRECTORY, /* with mode */
        ASSEMBLY_FILE,      /* a copy of what fd contains, with mode */
        ASSEMBLY_DATA,      /* the same in a hidden file, bound */
        ASSEMBLY_SYMLINK,   /* source is what it contains */
        ASSEMBLY_REMOUNT,   /* makes the mount at target read-only */
        ASSEMBLY_CHMOD,     /* mode for an existing path */
        ASSEMBLY_KIND_MAX,
} AssemblyKind;

enum {
        ASSEMBLY_READ_ONLY = 1 << 0,
        ASSEMBLY_DEVICES = 1 << 1,  /* device nodes work */
        ASSEMBLY_OPTIONAL = 1 << 2, /* a missing source is skipped */
        ASSEMBLY_PRIVATE = 1 << 3,  /* changes of an overlay go to memory */
};

typedef struct AssemblyStep {
        AssemblyKind kind;
        unsigned flags;
        const char *option; /* its name, for errors: "--ro-bind" */
        const char *source, *work, *target;
        int fd;        /* FD_NONE if the step has none */
        mode_t mode;   /* permissions */
        uint64_t size; /* bytes; 0 for the kernel's default */
        int mount_fd;  /* the detached mount of a bind, between two steps of the child; FD_NONE if
                          an optional source is missing */
} AssemblyStep;

enum {
        ASSEMBLY_STEPS_MAX = 4096,
        ASSEMBLY_FILTERS_MAX = 64,
        ASSEMBLY_LOCKS_MAX = 64,
};

typedef struct Assembly {
        AssemblyStep *steps; /* owned */
        size_t count;

        /* namespaces */
        uint64_t namespaces; /* CLONE_NEW* of the new ones */
        bool user_try, cgroup_try;
        bool disable_userns, assert_userns_disabled;
        int userns_fd, userns2_fd, pidns_fd; /* namespaces to enter; FD_NONE for none */
        int64_t uid, gid;                    /* inside; -1 for the caller's own */
        const char *hostname;                /* NULL for the caller's */
        const char *console; /* the caller's terminal, for a /dev; NULL without one */

        /* the command */
        const char *cwd; /* NULL: the first of these directories that exists inside */
        const char *homes[3];
        char **pwd;              /* the place of PWD in the environment; the child fills it in */
        char *former_pwd;        /* what that place contained before */
        char *pwds[3];           /* "PWD=" and cwd, or "PWD=" and each of homes */
        const char *const *argv; /* NULL-terminated */
        const char *argv0;       /* what the command gets as its own name, or NULL */
        bool new_session, die_with_parent, as_pid_1;

        /* capabilities */
        bool capabilities_named; /* --cap-add or --cap-drop was given */
        uint64_t capabilities;   /* a bit for each that the command keeps */

        /* descriptors of the caller; FD_NONE for none */
        int block_fd, userns_block_fd, info_fd, status_fd, sync_fd;
        int filter_fds[ASSEMBLY_FILTERS_MAX]; /* programs for seccomp, in their order */
        size_t filters_count;
        const char *locks[ASSEMBLY_LOCKS_MAX]; /* paths inside */
        int lock_fds[ASSEMBLY_LOCKS_MAX];      /* opened by the child */
        size_t locks_count;

        /* prepared */
        bool confined;   /* a policy of holt applies, too */
        bool reaps;      /* helpers/reaper.c starts the command; otherwise the child executes it */
        int filters_fd;  /* the programs as helpers/reaper-protocol.h describes, or FD_NONE */
        int parent_fd;   /* a pidfd of the child's parent, if the child dies with it; or FD_NONE */
        int info_socket; /* gives the child info_fd, which no other process then has */
} Assembly;

/* Whether the sandbox has PIDs that differ from the caller's. */
static inline bool assembly_has_own_pids(const Assembly *a) {
        return a->namespaces & CLONE_NEWPID || a->pidns_fd >= 0;
}
