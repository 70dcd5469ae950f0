/* SPDX-License-Identifier: Apache-2.0 */
/* The git repository that a workspace is, or lies in, and those below that git enters from there by
 * itself: `git status` at the top, which many a shell prompt runs, asks every gitlink of the index
 * that has a .git, and does what that one's config says. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "sandbox/git-index.h"

/* Opens what path, a .git relative to tree_fd, the work tree that is tree on the host, is or leads
 * to: an O_PATH fd that the caller owns, or a negative errno.
 *
 * ret_leads  may be NULL. If the .git is a file that names a directory, as worktrees and submodules
 *            have it, then that is written there, whether it could be opened or not: an absolute
 *            path in normal form that the caller owns. Else it is left alone. */
int repository_open(int tree_fd, const char *tree, const char *path, char **ret_leads);

/* Opens the nearest .git above tree, an absolute path of the kernel's, which is cut to the work
 * tree where that is ("" for the root), so that the next call finds the next one: an fd as above.
 * -ENOENT when there is none. */
int repository_open_above(char *tree);

/* What the index of a repository said when it was looked at. */
typedef struct IndexState {
        dev_t device;
        ino_t inode;
        struct timespec changed; /* no program can set it, but not every file system keeps it */
        bool uncertain;          /* it does not say all, or its ctime may not have moved on since */
        StrList trees;           /* its sparse directories, as git-index.h has them; owned */
} IndexState;
bool repository_unchanged(int git_fd, const IndexState *state);

void index_state_clear(IndexState *state);

/* Whether something is where a sparse directory would be, which git keeps off the disk. While
 * nothing is there nothing is entered, whatever the tree has in it. */
bool repository_tree_there(int tree_fd, const char *tree);

/* The gitlinks of the repository whose directory git_fd is, by its index as it is now: paths in
 * normal form. The state is written in any case; the caller ends with index_state_clear().
 *
 * 0, and the caller ends with strlist_clear(); -ENOENT without an index; what git_index_read()
 * says of one that git did not write; -ELOOP or another negative errno of openat2(2). */
int repository_links(int git_fd, StrList *ret_links, IndexState *ret_state);
