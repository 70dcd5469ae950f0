/* SPDX-License-Identifier: Apache-2.0 */
/* Types shared by the files of watch.h. watch-names.c finds the names on the way to a path; watch.c
 * chooses the paths, and compares. */
#pragma once

#include "guards/watch-missing.h"
#include "guards/watch.h"

typedef struct WatchDirectory {
        char *path; /* Path inside. */
        int fd;
} WatchDirectory;

typedef struct WatchName {
        char *path; /* Path inside; its last part is the name. */
        size_t directory;
        int fd; /* O_PATH. While it is open, no other file gets its inode number. */
        dev_t device;
        ino_t inode;
        mode_t mode;
        bool hidden;   /* The name itself is hidden, not only the target of a symlink. */
        bool mounted;  /* A mount lies on it inside. */
        bool of_mount; /* Part of the path to a hidden file or to a mount of the plan. */
        bool covered;  /* Not checked: a directory above it is protected or hidden. */
        char *link;    /* The target if it is a symlink, or NULL. */
} WatchName;

struct Watch {
        LaunchPlan *plan;
        const SystemTree *system;
        WatchDirectory *directories;
        WatchName *names;
        WatchMissing *missing;
        size_t directories_count, names_count;
        int root_fd, mounts_fd; /* Root and mount namespace of the running sandbox. Owned. */
};

/* Watches path, a path inside, and each directory and symlink on the way to it. mount is the plan's
 * mount at path, borrowed, or NULL. Returns 0 or a negative errno. */
int watch_add_path(Watch *watch, const char *path, const PlanMount *mount, Error *reterr);

/* Returns the last name of path. */
const char *watch_last_part(const char *path);
