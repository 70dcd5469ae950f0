/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the repositories below a work tree that git enters by itself: the gitlinks of its index.
 * Supports versions 2 to 4 of gitformat-index(5), SHA-1 and SHA-256, and split indexes.
 *
 * The bytes may come from an attacker. An index that git could read in two ways is refused, so that
 * holt and git always see the same entries. An entry whose path leads out of the work tree or into
 * .git is refused too. git never writes such a path, but follows it: `git checkout .` would write
 * there, and `git add .` would add files from there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strings.h"

enum {
        GIT_INDEX_SIZE_MAX = 1 << 28, /* Bytes. */
        GIT_INDEX_LINKS_MAX = 10000,
        GIT_INDEX_TREES_MAX = 100000,
        GIT_INDEX_PATHS_MAX = 1 << 24, /* Bytes of all these paths together. */
        GIT_INDEX_DEPTH_MAX = 256,     /* Parts of one path. */
};

typedef enum GitHash { GIT_EITHER, GIT_SHA1, GIT_SHA256 } GitHash;

typedef struct GitIndex {
        StrList links; /* Paths of the gitlinks, relative to the work tree, in normal form. */
        StrList trees; /* Paths of the sparse directories; their trees may contain more gitlinks. */
        size_t bytes;  /* Size of these paths. */
        /* The rest of a split index is in sharedindex.SHARED beside it. "" if the index is not
         * split. */
        char shared[65];
        /* A gitlink takes its name from the shared part: it may be any of the names there. */
        bool nameless;
} GitIndex;

/* Parses an index.
 *
 * hash: the repository's hash, from a source that only its owner can write. An attacker could make
 * an index that has other entries if it is read with the other hash.
 *
 * every: take all entries and not only gitlinks; used for the shared part if `nameless` is set.
 *
 * Returns 0, and the caller ends with git_index_clear(). Returns -EBADMSG if the bytes are not an
 * index or can be read in two ways, -E2BIG past the bounds above, or -ENOMEM. */
int git_index_read(const void *bytes, size_t size, GitHash hash, bool every, GitIndex *ret);

/* The same for a file, of which fstat(2) has told the size. Also returns the negative errno of
 * pread(2). If the file changes meanwhile, the result may mix old and new entries. */
int git_index_read_file(int fd, size_t size, GitHash hash, bool every, GitIndex *ret);

void git_index_clear(GitIndex *index);
