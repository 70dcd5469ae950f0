/* SPDX-License-Identifier: Apache-2.0 */
/* What the files-*.c share: from a path to an fd, and from an errno to an Error.
 *
 * Functions without an Error return a negative errno, which files_fail() puts into words. */
#pragma once

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "files/files.h"

/* Where the notes of unfinished things are; see files/unfinished.h. */
typedef struct UnfinishedNotes {
        int dir_fd;         /* borrowed, or FD_NONE */
        const char *prefix; /* of their names */
} UnfinishedNotes;

struct Files {
        int root_fd; /* borrowed */
        char *cwd;
        const LaunchPlan *plan; /* borrowed, or NULL */
        UnfinishedNotes notes;
};

/* A name in a directory: what is made, renamed or removed. name is never "", "." or "..". */
typedef struct FilesPlace {
        int dir_fd; /* O_PATH */
        char name[NAME_MAX + 1];
} FilesPlace;

#define FILES_PLACE_NONE ((FilesPlace){ .dir_fd = FD_NONE })

void files_place_clear(FilesPlace *place);

/* Opens what the sandbox sees at path. A link at the end is followed unless flags have O_NOFOLLOW;
 * without O_PATH in flags the caller has to know what kind of file it is. An fd, or a negative
 * errno of openat2(2): -ELOOP (a magic link of /proc, or links in a circle), -EAGAIN (the tree
 * moves all the time). */
int files_open(const Files *files, const char *path, int flags);
/* Where the last part of path is, or would be. follow: where what a link there names is, or would
 * be. 0, -EINVAL (no name at the end), -ELOOP (40 links), or another errno of openat2(2). */
int files_place(const Files *files, const char *path, bool follow, FilesPlace *ret);
/* The same, after making the directories that lead there, where make_parents. */
int files_place_made(const Files *files, const char *path, bool follow, bool make_parents,
                     FilesPlace *ret);

/* What name in dir_fd is, itself and not what a link names: an O_PATH fd. -EBUSY where a mount is
 * on it.
 *
 * Who renames or removes has to ask. Inside the kernel refuses for a mount point, but in the
 * keeper's mount namespace it is none: there the name would go, and every mount on it with it, a
 * guard's too (detach_mounts(), Linux 3.18). Nobody inside can move a mount point, so what was none
 * when it was looked at is none later. */
int files_child(int dir_fd, const char *name);
/* The same, into mounts. */
int files_child_across(int dir_fd, const char *name);

/* An fd of what the O_PATH fd is, opened with flags; -EISDIR, or -EOPNOTSUPP for what is no regular
 * file, or one of /proc or /sys. Nothing else is ever opened, since to open a device or a fifo is
 * an act. -EAGAIN: somebody inside has a lease on it (fcntl(2)). */
int files_reopen(int path_fd, int flags);
/* Whether the fd lies in /proc, /sys or another tree that the kernel makes up. */
bool files_is_made_up(int fd);

void files_stat_fill(const struct stat *st, FileStat *ret);
/* The same with the target of a link. 0, -ENOMEM, or a negative errno of fstat(2). */
int files_stat_fd(int path_fd, FileStat *ret);

/* Whether the policy is the reason, and not path's own permissions and the like. */
bool files_is_policy(const Files *files, int r, const char *path);
/* "cannot DOING PATH", with the kind and the cure that belong to -r. Returns r. files: of whose
 * plan may be the reason, or NULL. */
int files_fail(const Files *files, int r, const char *doing, const char *path, Error *reterr);
/* The same of what would have been made, whose directory is not there unless make_parents. */
int files_fail_made(const Files *files, int r, const char *doing, const char *path,
                    bool make_parents, Error *reterr);
/* The same for what glob_new() says of a pattern. */
int files_glob_fail(int r, const char *pattern, Error *reterr);
