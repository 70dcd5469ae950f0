/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through trees that other processes change meanwhile: each directory is opened by its own
 * fd, and no symlink is followed. Functions return negative errnos; see path.h. */
#pragma once

#include <stdatomic.h>

#include "files/path.h"

enum {
        WALK_ENTRIES_MAX = 10 * 1000 * 1000, /* Names that one call visits. */
        WALK_ON = 0,
        WALK_DOWN, /* Enter the directory that the entry is. */
        WALK_END,
};

/* type: a DT_ of readdir(3), never DT_UNKNOWN. Returns 0 to go on; any other value ends the walk
 * and is returned. */
typedef int (*WalkNameFn)(void *data, int dir_fd, const char *name, unsigned char type);
/* Visits each name in the directory except "." and "..". Names are in byte order within each batch
 * of 1024, so that a large directory needs little memory. Below a depth of 64 a batch has 32 names,
 * because each directory on the way down holds a batch. *left counts down by one for each name; at
 * 0 the result is -E2BIG. path_fd may be an O_PATH fd. */
int walk_names(int path_fd, unsigned depth, uint64_t *left, WalkNameFn fn, void *data);

/* Ends this thread's walks, and its copies of contents, with -ECANCELED once *stop is set. NULL
 * disables that. Returns the previous pointer. */
const atomic_bool *walk_until(const atomic_bool *stop);
bool walk_stopped(void);

typedef struct WalkEntry {
        int dir_fd;
        const char *name;   /* Name in dir_fd. */
        const char *path;   /* Path from the start of the walk. */
        unsigned char type; /* A DT_ of readdir(3). */
        unsigned depth;     /* 0 for entries of the top directory. */
} WalkEntry;

/* Returns WALK_ON, WALK_DOWN, WALK_END or a negative errno. */
typedef int (*WalkFn)(void *data, const WalkEntry *entry);
/* Calls fn for each entry below the directory, and for a directory before its entries. The kernel's
 * file systems (/proc, /sys) are skipped, unless the walk begins in one. ret->error is 0, or names
 * why entries are missing; a limit takes precedence over a permission. */
int walk_tree(int path_fd, WalkFn fn, void *data, FilesMissed *ret);
/* Records a directory in missed, unless missed has a more important one. */
void walk_miss(FilesMissed *missed, int error, const char *path);
/* Whether one of holt's limits kept entries from fn. */
bool walk_was_cut(const FilesMissed *missed);

/* Collects the smallest names of all that are offered, up to a limit. */
typedef struct NamePage {
        const char *after; /* Borrowed; only names behind it count. */
        size_t limit;
        bool more; /* The limit left names out. */

        char **names; /* Owned; a heap with the largest name in front, until it is sorted. */
        size_t count, size, bytes;
} NamePage;

void name_page_clear(NamePage *page);
/* Returns 0 or -ENOMEM. A page of more than 8 MiB of names is shorter than its limit. */
int name_page_offer(NamePage *page, const char *name);
void name_page_sort(NamePage *page);
