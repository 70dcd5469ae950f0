/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through trees that somebody else changes meanwhile: every directory by its own fd, no link
 * followed. Negative errnos; see path.h. */
#pragma once

#include <stdatomic.h>

#include "files/path.h"

enum {
        WALK_ENTRIES_MAX = 10 * 1000 * 1000, /* names that one call looks at */
        WALK_ON = 0,
        WALK_DOWN, /* into the directory that the entry is */
        WALK_END,
};

/* type: a DT_ of readdir(3), never DT_UNKNOWN. 0 goes on, anything else ends it and is returned. */
typedef int (*WalkNameFn)(void *data, int dir_fd, const char *name, unsigned char type);
/* Each name in the directory but "." and "..", in byte order within every 1024: of a larger
 * directory no more is held in memory. Below a depth of 64 it is every 32, since each directory on
 * the way down holds its names. *left counts down by one for each; at 0 it is -E2BIG. path_fd may
 * be an O_PATH fd. */
int walk_names(int path_fd, unsigned depth, uint64_t *left, WalkNameFn fn, void *data);

/* From now on walks of this thread, and copies of contents, end with -ECANCELED once *stop is set;
 * NULL: none do. Returns what was in force. */
const atomic_bool *walk_until(const atomic_bool *stop);
bool walk_stopped(void);

typedef struct WalkEntry {
        int dir_fd;
        const char *name;   /* in dir_fd */
        const char *path;   /* from where the walk began */
        unsigned char type; /* DT_ */
        unsigned depth;     /* 0 for what lies directly there */
} WalkEntry;

/* WALK_ON, WALK_DOWN, WALK_END or a negative errno. */
typedef int (*WalkFn)(void *data, const WalkEntry *entry);
/* Calls fn for each entry below the directory, a directory before what is in it. Trees of the
 * kernel's
 * (/proc, /sys) are passed over, unless the walk begins in one. ret->error is 0, or names why there
 * are entries that fn did not get; a limit is named rather than a permission. */
int walk_tree(int path_fd, WalkFn fn, void *data, FilesMissed *ret);
/* Notes a directory in missed, unless it has one that says more. */
void walk_miss(FilesMissed *missed, int error, const char *path);
/* Whether it was a limit of ours that kept entries from fn. */
bool walk_was_cut(const FilesMissed *missed);

/* The limit smallest of all names that are offered, whatever their number. */
typedef struct NamePage {
        const char *after; /* borrowed; only what is behind it counts */
        size_t limit;
        bool more; /* names were left out for the limit's sake */

        char **names; /* owned; a heap with the largest in front until it is sorted */
        size_t count, size, bytes;
} NamePage;

void name_page_clear(NamePage *page);
/* 0 or -ENOMEM. Past 8 MiB of names the page is shorter than its limit. */
int name_page_offer(NamePage *page, const char *name);
void name_page_sort(NamePage *page);
