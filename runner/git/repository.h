/* SPDX-License-Identifier: Apache-2.0 */
/* The git repository of a workspace, the repositories above it, and those below that git enters by
 * itself. For example, many shell prompts run `git status`. This command enters every gitlink of
 * the index that has a .git, and obeys its config. */
#pragma once

#include <errno.h>
#include <stdbool.h>

#include "git/index.h"
#include "policy/plan.h"

/* Whether r must end a search: -ENOMEM, or -EAGAIN if another process holds a lease on a file
 * (F_SETLEASE of fcntl(2)). A command of another run may hold one. Then holt cannot read the
 * file, and would leave the paths that it names unprotected. All functions here return
 * these codes. */
static inline bool repository_is_closed(int r) {
        return r == -ENOMEM || r == -EAGAIN;
}

/* Opens a repository's directory. path is a .git relative to tree_fd, the work tree whose path on
 * the host is tree. Returns an O_PATH fd that the caller owns, or a negative errno.
 *
 * ret_leads  may be NULL. In worktrees and submodules, the .git is a file that names a directory.
 *            Then *ret_leads is that path, even if it could not be opened. It is absolute, in
 *            normal form and owned by the caller. Otherwise *ret_leads is not written. */
int repository_open(int tree_fd, const char *tree, const char *path, char **ret_leads);

/* Reads a regular file of at most max bytes, such as a git config. Symlinks are followed. The
 * caller owns *ret, which ends in a zero byte. Returns 0 or a negative errno. -ENXIO: a device such
 * as /dev/null. -EBADMSG: another file that is not regular. -E2BIG: more than max bytes. */
int repository_read(int dir_fd, const char *path, size_t max, char **ret, size_t *ret_size);

/* Does the same for the file of path_fd, an O_PATH fd that it closes. If path_fd is negative, errno
 * says why. If a guard of plan holds the content, nothing is read: all decisions about a protected
 * file come from the same bytes. plan may be NULL. */
int repository_read_fd(const LaunchPlan *plan, int path_fd, size_t max, char **ret,
                       size_t *ret_size);

/* Opens the nearest .git above tree, an absolute path as the kernel names it. tree is cut to the
 * work tree of that .git ("" for the root), so that the next call finds the next one. Returns an
 * O_PATH fd that the caller owns, -ENOENT if there is none, or -EAGAIN. */
int repository_open_above(char *tree);

/* A work tree or a directory in one. All members are borrowed. */
typedef struct RepositoryTree {
        int fd;           /* O_PATH. */
        const char *real; /* Its path as the kernel names it. */
} RepositoryTree;

static inline RepositoryTree repository_tree(const PlanMount *workspace) {
        return (RepositoryTree){ workspace->fd, workspace->real };
}

/* Places that git enters by itself. The paths are relative to the tree and in normal form. */
typedef struct RepositoryLinks {
        StrList links; /* Paths of gitlinks and submodules, without their .git. */
        /* Sparse directories, which git keeps off the disk. git enters nothing there while the
         * directory does not exist. If it exists, only the repository's objects tell what git may
         * enter. "." means that the whole tree lies in a sparse directory. */
        StrList trees;
        /* Its guards may hold the config, see repository_read_fd(), and indexes that it names as
         * plain are not read again. Borrowed, may be NULL. */
        const LaunchPlan *plan;
        /* Before a command: where to add large indexes that lead to no other repository. NULL:
         * nowhere. */
        StrList *ret_plain;
        /* Work done, and the bound past which calls fail with -E2BIG; 0 means no bound. */
        size_t work, work_max;
} RepositoryLinks;

/* Units of work, about a microsecond each. They bound the time, because the command decides how
 * many files there are. */
enum {
        REPOSITORY_WORK_MAX = 4000000,  /* Before a command runs. */
        REPOSITORY_WORK_MORE = 1000000, /* After a command, beyond the work done before it. */
        REPOSITORY_WORK_SPARE =
                250000, /* For links that the command did not make, after its own are done. */
        REPOSITORY_WORK_BYTES = 128,    /* This many bytes of an index are one unit. */
        REPOSITORY_WORK_PATH = 4,       /* For opening one path. */
        REPOSITORY_WORK_LENGTH = 16,    /* This many bytes of a path are one more unit. */
        REPOSITORY_INDEX_LARGE = 65536, /* Bytes. A smaller index is quickly read again. */
};

/* Adds to the work done. Returns false once it exceeds work_max. */
bool repository_works(RepositoryLinks *links, size_t work);

/* Returns the work of opening path. */
size_t repository_path_work(const char *path);

/* Adds the links of the repository whose .git is at path, relative to the tree. They come from its
 * current index, and from the submodules that it keeps (git/modules.h). Without a repository at
 * path, nothing is added.
 *
 * Returns 0, an error of git_index_read() for an index that git did not write, -E2BIG past
 * work_max, -ELOOP, or another negative errno of openat2(2). The caller ends with
 * repository_links_clear(). */
int repository_links(const RepositoryTree *tree, const char *path, RepositoryLinks *ret);

/* Adds the links of every repository above the tree. The search does not stop at the first .git: an
 * earlier run may have made it, and git may not accept it as a repository. An unreadable index adds
 * nothing. Returns 0, -ENOMEM or -EAGAIN. */
int repository_links_above(const RepositoryTree *tree, RepositoryLinks *ret);

void repository_links_clear(RepositoryLinks *links);

/* Whether a file or directory exists at path, one of the sparse directories. */
bool repository_tree_there(const RepositoryTree *tree, const char *path);
