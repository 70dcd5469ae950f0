/* SPDX-License-Identifier: Apache-2.0 */
/* What is watched, as the files of watch.h share it: watch-names.c finds the names on the way to a
 * path, watch.c says which paths, and compares. */
#pragma once

#include "guards/watch-missing.h"
#include "guards/watch.h"

typedef struct WatchDirectory {
        char *path; /* inside */
        int fd;
        dev_t device;
} WatchDirectory;

typedef struct WatchName {
        char *path; /* inside; its last part is the name */
        size_t directory;
        int fd; /* O_PATH; while it is open, no other file gets its inode */
        dev_t device;
        ino_t inode;
        mode_t mode;
        bool hidden;            /* itself, and not through a symlink */
        const PlanMount *mount; /* that the plan has here, borrowed; or NULL */
        bool mounted;           /* inside there is a mount on it */
        bool of_mount;          /* of the path to a hidden file or a mount of the plan */
        bool covered;           /* not looked at: a directory above it is protected or hidden */
        char *link;             /* the target of a symlink, or NULL */
} WatchName;

struct Watch {
        LaunchPlan *plan;
        const SystemTree *system;
        WatchDirectory *directories;
        WatchName *names;
        WatchMissing *missing;
        size_t directories_count, names_count;
        int root_fd, mounts_fd; /* of the sandbox, once it lives */
};

/* Watches path, inside, and each directory and symlink that leads to it. mount: what the plan
 * mounts there, borrowed, or NULL. 0 or a negative errno. */
int watch_add_path(Watch *watch, const char *path, const PlanMount *mount, Error *reterr);

/* The name at the end of path. */
const char *watch_last_part(const char *path);
