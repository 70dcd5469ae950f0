/* SPDX-License-Identifier: Apache-2.0 */
/* From a path to an fd, and from an errno to an Error: shared by the files of this folder.
 *
 * Functions without an Error return a negative errno for files_fail(). */
#pragma once

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "files/files.h"

/* Place of the notes of unfinished files; see files/unfinished.h. */
typedef struct UnfinishedNotes {
        int dir_fd;         /* Borrowed, or FD_NONE. */
        const char *prefix; /* Prefix of their names. */
} UnfinishedNotes;

struct Files {
        int root_fd; /* Borrowed. */
        char *cwd;
        const LaunchPlan *plan; /* Borrowed, or NULL. */
        UnfinishedNotes notes;
};

/* A name in a directory, for a file to make, rename or remove. name is never "", "." or "..". */
typedef struct FilesPlace {
        int dir_fd; /* An O_PATH fd. */
        char name[NAME_MAX + 1];
} FilesPlace;

#define FILES_PLACE_NONE ((FilesPlace){ .dir_fd = FD_NONE })

void files_place_clear(FilesPlace *place);

/* Opens path as the sandbox sees it. A symlink at the end is followed unless flags contain
 * O_NOFOLLOW. Without O_PATH in flags, the caller must know the kind of file. Returns an fd, or a
 * negative errno of openat2(2). -ELOOP means a magic link of /proc or a circle of symlinks; -EAGAIN
 * means that the tree changes all the time. */
int files_open(const Files *files, const char *path, int flags);
/* Finds the directory of the last part of path, which may be missing. follow: if that part is a
 * symlink, finds the directory of its target instead. Returns 0, -EINVAL (no name at the end),
 * -ELOOP (40 symlinks), or another negative errno of openat2(2). */
int files_place(const Files *files, const char *path, bool follow, FilesPlace *ret);
/* Returns -EROFS if the policy protects path, as far as its text shows. The kernel refuses to
 * change a protected file that exists. A new one would be set aside after the next command. */
int files_may_make(const Files *files, const char *path);
/* The same if path gets the file or directory of from_fd. If that contains a file for a protected
 * path below `path`, *ret is the part of that path below `path`, borrowed; otherwise NULL. */
int files_may_bring(const Files *files, const char *path, int from_fd, const char **ret);
/* Does the same as files_place(), after making missing directories if make_parents is true. */
int files_place_made(const Files *files, const char *path, bool follow, bool make_parents,
                     FilesPlace *ret);

/* Opens name in dir_fd as an O_PATH fd, without following a symlink. Returns -EBUSY for a mount
 * point.
 *
 * Functions that rename or remove a file must call this. The kernel refuses to remove a mount point
 * only in the mount namespace of the mount, and the keeper is in another one. From there, the file
 * would be removed together with every mount on it, even a guard's (detach_mounts(), Linux 3.18).
 * No process inside can move a mount point, so a name that passes this check stays safe. */
int files_child(int dir_fd, const char *name);
/* Does the same, and enters mounts. */
int files_child_across(int dir_fd, const char *name);

/* Opens the file of an O_PATH fd with flags. Returns -EISDIR, or -EOPNOTSUPP for other files that
 * are not regular or are in /proc or /sys. These are never opened, because opening a device or a
 * fifo has effects. Returns -EAGAIN if a process inside has a lease on the file (fcntl(2)). */
int files_reopen(int path_fd, int flags);
/* Whether the fd is in /proc, /sys or another file system that the kernel generates. */
bool files_is_made_up(int fd);

void files_stat_fill(const struct stat *st, FileStat *ret);
/* Fills *ret, with a symlink's target. Returns 0, -ENOMEM, or a negative errno of fstat(2). */
int files_stat_fd(int path_fd, FileStat *ret);

/* Whether the policy caused r, rather than the path's own permissions or similar. */
bool files_is_policy(const Files *files, int r, const char *path);
/* Sets "cannot DOING PATH", with the kind and the cure for -r. Returns r. files may be NULL; its
 * plan may explain the failure. */
int files_fail(const Files *files, int r, const char *doing, const char *path, Error *reterr);
/* Does the same for a file to make. The cure mentions its missing directory unless make_parents is
 * true. */
int files_fail_made(const Files *files, int r, const char *doing, const char *path,
                    bool make_parents, Error *reterr);
/* Does the same for an error of glob_new(). */
int files_glob_fail(int r, const char *pattern, Error *reterr);
