/* SPDX-License-Identifier: Apache-2.0 */
/* Which repositories below a work tree its git enters by itself: the gitlinks of its index
 * (gitformat-index(5), versions 2 to 4, SHA-1 and SHA-256, split indexes too).
 *
 * The bytes may be an attacker's. What git could read in two ways is refused, so that nobody can
 * show us one list of entries and git another; and so is an entry whose path leads out of the work
 * tree or into .git, which git never writes but goes by: `git checkout .` would write there, and
 * `git add .` take in what is there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strings.h"

enum {
        GIT_INDEX_SIZE_MAX = 1 << 28, /* bytes */
        GIT_INDEX_LINKS_MAX = 10000,
        GIT_INDEX_TREES_MAX = 100000,
        GIT_INDEX_PATHS_MAX = 1 << 24, /* bytes of all these paths together */
        GIT_INDEX_DEPTH_MAX = 256,     /* parts of one of them */
};

typedef enum GitHash { GIT_EITHER, GIT_SHA1, GIT_SHA256 } GitHash;

typedef struct GitIndex {
        StrList links;   /* paths of the gitlinks, relative to the work tree, in normal form */
        StrList trees;   /* paths of the sparse directories: whatever is in the tree is below */
        size_t bytes;    /* of these paths */
        char shared[65]; /* the rest of a split index is in sharedindex.SHARED beside it; or "" */
        bool nameless;   /* a gitlink has its name from there: it may be any of the names there */
} GitIndex;

/* What bytes say. hash: the repository's, which nobody but its owner may have said; one that git
 * reads by the other could be made to say something else. every: all entries and not only gitlinks,
 * for the shared part where nameless is true.
 *
 * 0, and the caller ends with git_index_clear(); -EBADMSG for what is no index, or not one way
 * only; -E2BIG past these bounds; -ENOMEM. */
int git_index_read(const void *bytes, size_t size, GitHash hash, bool every, GitIndex *ret);

void git_index_clear(GitIndex *index);
