/* SPDX-License-Identifier: Apache-2.0 */
/* The git repository that a workspace is, or lies in, and those below that git enters from there by
 * itself: `git status` at the top, which many a shell prompt runs, asks every gitlink of the index
 * that has a .git, and does what that one's config says. */
#pragma once

#include <errno.h>
#include <stdbool.h>

#include "guards/git-index.h"
#include "policy/plan.h"

/* What ends a search: no memory, and -EAGAIN, when somebody keeps a lease on a file (F_SETLEASE of
 * fcntl(2)), which a command of another run may. What it says nobody knows then, and not to know
 * would be to leave unprotected what it leads to. All functions here return it. */
static inline bool repository_is_closed(int r) {
        return r == -ENOMEM || r == -EAGAIN;
}

/* Opens what path, a .git relative to tree_fd, the work tree that is tree on the host, is or leads
 * to: an O_PATH fd that the caller owns, or a negative errno.
 *
 * ret_leads  may be NULL. If the .git is a file that names a directory, as worktrees and submodules
 *            have it, then that is written there, whether it could be opened or not: an absolute
 *            path in normal form that the caller owns. Else it is left alone. */
int repository_open(int tree_fd, const char *tree, const char *path, char **ret_leads);

/* Reads the whole of a regular file of max bytes at most, by whatever links: a git config or the
 * like. *ret is the caller's, with a zero behind it. 0, -ENXIO for a device, as /dev/null is,
 * -EBADMSG for what else is no regular file, -E2BIG, -ENOMEM, -EAGAIN, or another negative errno
 * of openat(2) or read(2). */
int repository_read(int dir_fd, const char *path, size_t max, char **ret, size_t *ret_size);

/* Opens the nearest .git above tree, an absolute path of the kernel's, which is cut to the work
 * tree where that is ("" for the root), so that the next call finds the next one: an fd as above.
 * -ENOENT when there is none, or -EAGAIN. */
int repository_open_above(char *tree);

/* A work tree, or a directory of one. All borrowed. */
typedef struct RepositoryTree {
        int fd;           /* O_PATH */
        const char *real; /* the kernel's own path */
} RepositoryTree;

static inline RepositoryTree repository_tree(const PlanMount *workspace) {
        return (RepositoryTree){ workspace->fd, workspace->real };
}

/* Where git goes on by itself. Paths are relative to the tree and in normal form. */
typedef struct RepositoryLinks {
        StrList links; /* the gitlinks and submodules, without the .git */
        /* Sparse directories, which git keeps off the disk. While nothing is there nothing is
         * entered; what may be entered once something is, only the repository's objects know. "."
         * where the tree lies in one. */
        StrList trees;
        size_t work, work_max; /* done, and where to give up with -E2BIG; 0 for no end */
} RepositoryLinks;

/* Units of work, about a microsecond each: how much there is to look at is up to the command. */
enum {
        REPOSITORY_WORK_MAX = 4000000,  /* before a command runs */
        REPOSITORY_WORK_MORE = 1000000, /* after it, beyond what there was before */
        REPOSITORY_WORK_SPARE = 250000, /* for what is not the command's, once that is done */
        REPOSITORY_WORK_BYTES = 128,    /* so many bytes of an index are one unit */
        REPOSITORY_WORK_PATH = 4,       /* to open one of the paths */
        REPOSITORY_WORK_LENGTH = 16,    /* so many bytes of it are one more */
};

/* Counts work. False if that is more than work_max allows; it stays so. */
bool repository_works(RepositoryLinks *links, size_t work);

/* The work to open path. */
size_t repository_path_work(const char *path);

/* Adds those of the repository whose .git is at path, relative to the tree, by its index as it is
 * now, and by the submodules that it keeps (git-modules.h); nothing where there is no repository.
 *
 * 0; what git_index_read() says of an index that git did not write; -E2BIG past work_max; -ELOOP
 * or another negative errno of openat2(2). The caller ends with repository_links_clear(). */
int repository_links(const RepositoryTree *tree, const char *path, RepositoryLinks *ret);

/* Adds those of every repository that the tree lies in: a .git between, which an earlier run may
 * have made, need not be one to git. An index that can't be read tells nothing. 0, -ENOMEM or
 * -EAGAIN. */
int repository_links_above(const RepositoryTree *tree, RepositoryLinks *ret);

void repository_links_clear(RepositoryLinks *links);

/* Whether something is at path, one of the sparse directories. */
bool repository_tree_there(const RepositoryTree *tree, const char *path);
