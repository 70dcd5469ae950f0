/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out which files of the host a sandbox can write or replace.
 *
 * Theory of operation. holt must not obey a file that a sandbox has written. A path is safe only if
 * the sandbox can neither write the file, nor make one of the path's names lead elsewhere. So a
 * path is looked up here one name at a time, through symlinks and "..". Each directory on the way
 * is judged, and so is the file at the end.
 *
 * Each place is judged by an open fd. The kernel tells the mount of the fd, and
 * /proc/self/mountinfo tells the file system of that mount and the directory that it shows. So two
 * paths that show one directory by a bind mount count as the same place. This holds even if only a
 * directory below the workspace is mounted a second time.
 *
 * A hard link leaves no such trace. So a regular file that has several names, and lies on the same
 * file system as a writable mount, counts as reachable.
 *
 * An overlay shows the files of its layers, which the mount table names. So a place on an overlay
 * is also a place in each layer. */
#pragma once

#include <limits.h>

#include "policy/plan.h"

typedef struct Reach Reach;

enum {
        REACH_REPLACE = 1 << 0, /* Can make a name of the path lead to another file. */
        REACH_WRITE = 1 << 1,   /* Can write the file, or change the entries of the directory. */
        REACH_LINKED = 1 << 2,  /* May write the file by another name, a hard link. */
};

/* The sandbox's power over a place, and the mount that gives it. */
typedef struct Reached {
        unsigned how; /* REACH_ bits; if 0, the other members are not set. */
        /* The writable mount that gives this power; borrowed from the plan. */
        const PlanMount *mount;
        /* Path inside of the first place that the sandbox can change; "" for REACH_LINKED alone. */
        char inside[PATH_MAX];
} Reached;

/* Looks at the writable mounts of plan: the workspace, those of --rw and --files, and the root of a
 * session. plan is borrowed. Sources that are not open yet are opened. Excluded are the plan's
 * read-only mounts and the paths with pinned guards (PlanGuard.pinned, which only guards_prepare()
 * sets).
 *
 * A mount whose source does not exist is skipped. Returns 0 or a negative errno. */
int reach_new(const LaunchPlan *plan, Reach **ret, Error *reterr);
/* The same, with the read-only mounts included, for reach_each(). */
int reach_new_all(const LaunchPlan *plan, Reach **ret, Error *reterr);
/* NULL is legal. Returns NULL. */
Reach *reach_free(Reach *reach);
static inline void reach_freep(Reach **reach) {
        *reach = reach_free(*reach);
}

/* Looks up path, which may be relative to the working directory. *ret tells how the sandbox can
 * change it. *ret_fd is an O_PATH fd that the caller owns. Open or execute /proc/self/fd/N from
 * then on, and never the path again.
 *
 * Returns -ENOENT if the path does not exist; *ret is set nevertheless, since a sandbox may be able
 * to create a file there. Returns another negative errno if the lookup fails. */
int reach_path(const Reach *reach, const char *path, int *ret_fd, Reached *ret);

/* The same for an open file, independent of its path: REACH_WRITE or REACH_LINKED. Returns 0 or a
 * negative errno. */
int reach_fd(const Reach *reach, int fd, Reached *ret);

/* Whether the sandbox may be able to write an open file through a file system that hides its
 * layers. Such file systems are FUSE, and an overlay that was mounted elsewhere. Returns false for
 * the file system of the root directory and for programs of the system. Also returns false for file
 * systems of writable mounts, which the other functions judge. */
bool reach_opaque(const Reach *reach, int fd);

/* Calls fn for each place inside that shows the open directory fd or a part of it, through any
 * mount of the host. Places covered by another mount of the plan are skipped. `rest` is the
 * directory's path below the top of such a mount, or "" for the top itself. It is NULL if the mount
 * shows only a part of the directory. Stops at the first result of fn that is not 0 and returns it,
 * or returns a negative errno. */
typedef int (*ReachFn)(void *data, const PlanMount *mount, const char *inside, const char *rest);
int reach_each(const Reach *reach, int fd, ReachFn fn, void *data);

/* The place of an open file. */
typedef enum ReachPlace {
        REACH_OUTSIDE, /* Not in a writable mount. */
        REACH_OPEN,    /* In a writable mount, and the sandbox can write it there. */
        REACH_CLOSED,  /* In a writable mount, but guarded, hidden or covered by another mount. */
        /* The kernel does not tell the place, for example in another mount namespace. */
        REACH_UNKNOWN,
} ReachPlace;

ReachPlace reach_place(const Reach *reach, int fd);
