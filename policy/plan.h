/* SPDX-License-Identifier: Apache-2.0 */
/* The launch plan: a policy turned into steps. Pure data without a pointer into any document.
 *
 * plan_make() fills what follows from the policy and the caller's own facts;
 * runner/sandbox/prepare.c then opens every host path and fills the members marked "prepared".
 * After clone the child reads it and writes nothing but its Error. */
#pragma once

#include <linux/filter.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/file-id.h"
#include "base/strings.h"
#include "policy/layers.h"
#include "policy/policy.h"

#define PLAN_WHEELS "/mnt/wheels"

enum {
        PLAN_AGENT_ID = 1000, /* uid and gid inside */
        PLAN_MOUNTS_MAX = 256,
};

#define PLAN_SESSION_WORKSPACE "/workspace" /* where a session has its workspace */
#define PLAN_SESSION_OWN "/run/holt"        /* ... and what the keeper puts inside */

/* --- the fixed part of every sandbox, as tables (tree.c) --- */

/* A top directory of the system tree: copied as a link where the host has merged /usr, bound
 * read-only where it has a directory, left out where it has nothing. */
extern const char *const tree_system[];
extern const size_t tree_system_count;

/* Names in /etc that are taken from the system tree; a '*' at the end matches any ending. Sorted.
 */
extern const char *const tree_etc[];
extern const size_t tree_etc_count;

/* Files of /etc that are written afresh. */
typedef struct TreeFile {
        const char *name, *text;
} TreeFile;
extern const TreeFile tree_etc_files[];
extern const size_t tree_etc_files_count;

/* Directories and links of the root, parents first. */
typedef struct TreeNode {
        const char *path;
        const char *link; /* its target, or NULL for a directory */
} TreeNode;
extern const TreeNode tree_nodes[];
extern const size_t tree_nodes_count;

/* Nodes of the host's /dev that are bound. */
extern const char *const tree_devices[];
extern const size_t tree_devices_count;

/* Directories of the private tmpfs and where they go. */
typedef struct TreePrivate {
        const char *name, *target;
        mode_t mode;
        bool lasting; /* in a session it is a directory of the root, and lasts */
} TreePrivate;
extern const TreePrivate tree_private[];
extern const size_t tree_private_count;

/* Top directories, besides tree_system[], that are made afresh for each sandbox even where the root
 * lasts. */
extern const char *const tree_covered[];
extern const size_t tree_covered_count;

/* Parts of /proc that are read-only or masked (as the OCI runtime specification's defaults have
 * it). */
typedef struct TreeProc {
        const char *name;
        bool masked; /* nothing can be read; otherwise read-only */
} TreeProc;
extern const TreeProc tree_proc[];
extern const size_t tree_proc_count;

/* --- what the caller asked for --- */

/* Whoever compares with PLAN_BIND means files of the host. If another way to show them is needed,
 * it is a flag, so that all these checks hold for it. */
typedef enum PlanMountKind {
        PLAN_BIND,    /* source on the host */
        PLAN_PRIVATE, /* an empty directory of the private tmpfs */
        PLAN_HIDE,    /* an empty file or directory of mode 0 over what is there, if anything is */
        PLAN_MOUNT_KIND_MAX,
} PlanMountKind;

enum {
        PLAN_READ_ONLY = 1 << 0,
        PLAN_MAKE_TARGET = 1 << 1, /* the target lies in memory: made with its parents */
        PLAN_IN_ROOT = 1 << 2, /* ... in the root itself, which turns read-only before the attach */
        PLAN_WIDE_CHECK = 1 << 3,    /* refuse too-wide sources */
        PLAN_SHOWN = 1 << 4,         /* only to be looked at, with the rights of a stranger */
        PLAN_NO_LINKS = 1 << 5,      /* no symlink on the way to the source is followed */
        PLAN_MAY_GO = 1 << 6,        /* hidden for as long as it is there: the host may remove it */
        PLAN_HIDE_ABSOLUTE = 1 << 7, /* asked for by an absolute path, which may be the host's */
        PLAN_HIDE_SHOWN = 1 << 8,    /* prepared: ... and a mount of the plan shows that one */
};

/* Which file or directory a session's source must be. */
typedef struct PlanRecord {
        bool known;   /* false: what is at the path now becomes it */
        bool changed; /* prepared: the rest is new, and has to be stored */
        bool renamed; /* prepared: another file has its place, which holt accepts from the host */
        int fd;       /* prepared: O_PATH of the source, as the host has it; or FD_NONE */
        FileId id;
        FileId parent; /* the directory of a source that is no directory; mode 0 otherwise */
} PlanRecord;

typedef struct PlanMount {
        PlanMountKind kind;
        unsigned flags;
        char *source;       /* absolute host path; NULL but for PLAN_BIND */
        char *target;       /* absolute path inside, normal form */
        char *origin;       /* for errors: "--ro ~/.pyenv", "x.json: $.filesystem.hide[0]: .env" */
        PlanRecord *record; /* owned; NULL if the source may be anything */

        /* prepared */
        int fd;         /* O_PATH of source; or, tree is true, a detached id-mapped mount */
        bool tree;      /* fd is a mount to be moved as it is */
        bool directory; /* of the source */
        char *real;     /* the kernel's own path of the source; owned */
        dev_t device;   /* of the source, compared by the child when it opens it again */
        ino_t inode;
        uint64_t
                mount_id; /* of the mount on the host that the source is in; 0 if it is not known */
        uid_t owner;      /* of the source on the host */
} PlanMount;

/* A path that the policy protects (relative to the workspace, normal form). */
typedef struct PlanGuard {
        char *path;

        /* prepared */
        bool pinned;  /* it exists, and is mounted read-only over itself */
        int fd;       /* O_PATH of it, or FD_NONE; while it is open, no other file gets its inode */
        dev_t device; /* ... which these name */
        ino_t inode;
        bool directory;
        bool submodule; /* the .git of one, found in the index of the repository above */
} PlanGuard;

/* What git's directory in the workspace has that git does not make there (guards/strays.h). */
typedef struct PlanStrays {
        StrList paths;   /* relative to the workspace */
        StrList targets; /* of each, with what tells it from another of that name */
        size_t work;     /* that it took to find them */
} PlanStrays;

enum { PLAN_CPUS_MAX = 8192 }; /* of one machine; as CONFIG_NR_CPUS has it at most */

/* Files that holt has read and obeys, and that the sandbox must not change. */
typedef struct PlanInputs {
        struct PlanInput {
                char *path; /* on the host, as it was given */
                int fd;     /* by which it was read: the path must still lead there */
        } * items;
        size_t count;
} PlanInputs;

/* path is copied, fd is taken over in any case. 0 or -ENOMEM. */
int plan_inputs_add(PlanInputs *inputs, const char *path, int fd);
void plan_inputs_clear(PlanInputs *inputs);

typedef struct LaunchPlan {
        /* the tree */
        PlanMount rootfs; /* the system tree, without a target; source is NULL for the host's */
        PlanMount *mounts;
        size_t mounts_count;
        PlanGuard *guards;
        size_t guards_count;
        PlanInputs inputs;
        PlanStrays strays; /* prepared: the caller's */
        size_t links_work; /* prepared: that it took to find git's submodules */
        /* One for each other read-write mount. If it is a git repository, it gets the guards of
         * one: as its workspace, in a plan of which only mounts, workspace, guards, strays and
         * links_work are set. The mounts are borrowed of this plan from guards_prepare() on. */
        struct LaunchPlan *others;
        size_t others_count;
        uint64_t tmp_size;
        char *workspace; /* the workspace's target, or NULL */
        char *cwd;       /* absolute, inside */
        bool cwd_asked;  /* by --cwd */
        bool allow_wide;

        /* While the sandbox lives and anything is watched: an O_PATH fd of its root, in its mount
         * namespace (guards/watch.h). NULL otherwise. */
        const int *inside_fd;

        /* of a session; source is NULL for a single run */
        PlanMount root;  /* what "/" is inside, writable and lasting */
        PlanMount state; /* the session's own directory, which is not inside */

        /* the command */
        StrList argv;
        StrList env;
        const char *hostname;

        /* limits; 0 is none */
        uint64_t timeout, kill_after; /* usec */
        uint64_t memory, pids, open_files, file_size;
        unsigned cpus;   /* processors that all starts on */
        uint64_t output; /* bytes of stdout and stderr together */
        unsigned long cpu_set[PLAN_CPUS_MAX / (8 * sizeof(unsigned long))]; /* prepared: which they
                                                                             are, where cpus is
                                                                             not 0 */
        char *pids_origin; /* where pids is 1, which is too few: as policy_limit_text() */

        /* confinement */
        LandlockMode landlock;
        unsigned syscall_preset;
        struct sock_filter
                *program; /* compiled for this plan, or NULL for the built-in of the preset */
        struct sock_filter *program_quiet; /* the same without user notification */
        unsigned short program_length, program_quiet_length;
        int report_fd;     /* borrowed: a file that the command must not reach, or FD_NONE */
        unsigned degraded; /* LAYER_BITs that the caller lets go, should the host refuse them */
} LaunchPlan;

/* What plan_make() has to know of the caller. All borrowed. */
typedef struct PlanContext {
        const char *cwd;         /* absolute */
        const char *const *argv; /* the command; empty for a shell */
        const char *const
                *env; /* the caller's environment: only what the policy passes is looked up */
        const char *inside_cwd; /* --cwd, or NULL */
        const char *session;    /* the session's directory, absolute; NULL for a single run */
        unsigned degraded;      /* LAYER_BITs of --allow-degraded */
} PlanContext;

void plan_clear(LaunchPlan *plan);

/* 0, or -EINVAL for what only shows when paths are made absolute (two mounts on one target, an
 * argument or variable that execve(2) would refuse for its size, a target below a file), or
 * -ENOMEM. */
int plan_make(const Policy *policy, const PlanContext *context, LaunchPlan *ret, Error *reterr);

/* -E2BIG where one of the words, each a "what", is longer than execve(2) takes (MAX_ARG_STRLEN):
 * 128 KiB on machines with pages of 4 KiB. 0 otherwise. */
int plan_check_lengths(const StrList *list, const char *what, Error *reterr);

/* Adds to a plan that REST (starting with a slash, or "") below the target of a mount is hidden.
 * 0, -EINVAL (too many mounts) or -ENOMEM. */
int plan_hide(LaunchPlan *plan, const char *target, const char *rest, Error *reterr);

/* Refuses a mount whose source, path, is too wide to be written. Returns -EINVAL. */
int plan_refuse_wide(const PlanMount *mount, const char *path, Error *reterr);

/* The workspace's mount, or NULL. */
const PlanMount *plan_workspace(const LaunchPlan *plan);

/* The innermost mount of the plan (requested mounts only) whose target is path or above it, or
 * NULL. */
const PlanMount *plan_mount_above(const LaunchPlan *plan, const char *path);

/* Adds the host paths of all that the sandbox will be able to write. 0 or -ENOMEM. */
int plan_writable(const LaunchPlan *plan, StrList *ret);

/* The plan that has the guards of mount: plan itself for the workspace, one of its others, or NULL.
 */
const LaunchPlan *plan_guarding(const LaunchPlan *plan, const PlanMount *mount);

/* Whether path, which the policy protects in the workspace, is protected in every repository that
 * is mounted read-write: git's and holt's own files. Others are names of the workspace alone. */
bool plan_guards_others(const char *path);

/* Whether anything is guarded, in the workspace or another mount. */
bool plan_has_guards(const LaunchPlan *plan);

/* Whether anything in .git is protected, and so the submodules. A policy that protects nothing of
 * git's, as after --protect none, protects no submodule. */
bool plan_protects_git(const LaunchPlan *plan);
