/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of the host a sandbox can write, or put another in place of.
 *
 * Theory of operation. holt must not obey a file that a sandbox has written. A path is safe only if
 * the sandbox can neither write the file that it leads to, nor change what any of its names leads
 * to. So a path is looked up here one name at a time, through symlinks and "..", and each directory
 * on the way is judged as well as the file at its end.
 *
 * Each place is judged by an open fd. The kernel says which mount the fd belongs to, and
 * /proc/self/mountinfo says which part of which file system that mount shows. Two paths that show
 * the same directory by a bind mount are the same place therefore, even if only a directory below
 * the workspace is mounted a second time. A hard link leaves no such trace: a regular file that has
 * several names, and lies on the same file system as a writable mount, counts as reachable.
 *
 * An overlay shows the files of its layers, which the mount table names: a place on it is also the
 * places that it has in them. */
#pragma once

#include <limits.h>

#include "policy/plan.h"

typedef struct Reach Reach;

enum {
        REACH_REPLACE = 1 << 0, /* can make a name of the path lead to another file */
        REACH_WRITE = 1 << 1,   /* can write the file, or what is in the directory */
        REACH_LINKED = 1 << 2,  /* may write it by another name, a hard link */
};

/* What the sandbox can do, and by which mount. */
typedef struct Reached {
        unsigned how;           /* REACH_ bits; 0 for nothing, and the rest is unset then */
        const PlanMount *mount; /* the writable mount that is to blame; borrowed of the plan */
        char inside[PATH_MAX];  /* the first place that the sandbox can change, by its path inside;
                                 * "" for REACH_LINKED alone */
} Reached;

/* Looks at the writable mounts of plan, which is borrowed: the workspace, those of --rw and
 * --files, and of a session its root. Their sources are opened if they are not yet. The plan's
 * read-only mounts are taken away from them, and so is what a guard of the plan is pinned over
 * (PlanGuard.pinned, which only guards_prepare() sets).
 *
 * A mount whose source does not exist is passed over. 0, or a negative errno. */
int reach_new(const LaunchPlan *plan, Reach **ret, Error *reterr);
/* The same with the read-only mounts, for reach_each(). */
int reach_new_all(const LaunchPlan *plan, Reach **ret, Error *reterr);
/* NULL is legal; returns NULL. */
Reach *reach_free(Reach *reach);

/* Looks up path, which may be relative to the working directory, and says in *ret what the sandbox
 * can do to it. *ret_fd is an O_PATH fd of what the path leads to, which the caller owns: open or
 * execute /proc/self/fd/N from then on and never the path again.
 *
 * -ENOENT if the path leads nowhere: *ret is set nevertheless, for a sandbox that could make a file
 * there. Another negative errno of the lookup. */
int reach_path(const Reach *reach, const char *path, int *ret_fd, Reached *ret);

/* The same for an open file, whatever path has led to it: REACH_WRITE or REACH_LINKED. 0 or a
 * negative errno. */
int reach_fd(const Reach *reach, int fd, Reached *ret);

/* Whether an open file may be one that the sandbox can write, by a file system that does not tell:
 * FUSE, or an overlay whose layers can't be found from here, as it was mounted elsewhere. Not so
 * for the file system of the root directory, for programs of the system, and for the file system
 * of a writable mount, which the other functions judge. */
bool reach_opaque(const Reach *reach, int fd);

/* Calls fn for each place inside where the open directory fd, or a part of it, is: by whatever
 * mounts of the host it comes there, and unless another mount of the plan lies over it. rest is the
 * directory's path below the top of such a mount, "" if it is the top itself, and NULL if the mount
 * shows only a part of the directory. Ends with the first value of fn that is not 0 and returns
 * that, or a negative errno. */
typedef int (*ReachFn)(void *data, const PlanMount *mount, const char *inside, const char *rest);
int reach_each(const Reach *reach, int fd, ReachFn fn, void *data);

/* Where an open file lies. */
typedef enum ReachPlace {
        REACH_OUTSIDE, /* not in a writable mount */
        REACH_OPEN,    /* in one, and the sandbox can write it there */
        REACH_CLOSED,  /* in one, but guarded, hidden or covered by another mount */
        REACH_UNKNOWN, /* the kernel does not say where, as for another mount namespace */
} ReachPlace;

ReachPlace reach_place(const Reach *reach, int fd);
