/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses files as the sandbox sees them, from the host's side.
 *
 * Theory of operation. The keeper holds an O_PATH fd of the sandbox's own root, in the sandbox's
 * own mount namespace. Every path is resolved below it by openat2(2) with RESOLVE_IN_ROOT |
 * RESOLVE_NO_MAGICLINKS. So the kernel follows the same mounts and symlinks as for a command, and
 * cannot leave that root; "/" and ".." at the top lead to it. Therefore a file that is read-only,
 * hidden or protected inside is so here too. No process inside takes part. A mount point itself is
 * never replaced, renamed or removed.
 *
 * The files may still be an attacker's. Only regular files are read or written; a fifo, a device,
 * or a file of /proc or /sys is refused, and never opened. Sizes are read after the open, and never
 * trusted. Anything may be replaced between two calls.
 *
 * Paths are absolute, or relative to the cwd that files_new() got. Calls block only for the disk.
 * Contents move through a buffer of at most 128 KiB, whatever their size. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strings.h"
#include "policy/plan.h"

enum {
        FILES_READ_MAX = 512 * 1024, /* Bytes that one files_read() returns. */
        FILES_LIST_MAX = 10000,      /* Entries of one listing, glob or grep. */
        FILES_DEPTH_MAX = 1024,      /* Maximum nesting depth of directories in a walk. */
        FILES_GREP_LINE_MAX = 4096,  /* Bytes that grep shows of a line; the rest is cut. */
};

typedef struct Files Files;

typedef enum FileType {
        FILE_REGULAR,
        FILE_DIRECTORY,
        FILE_LINK,
        FILE_OTHER, /* Fifo, socket or device. */
        FILE_TYPE_MAX,
} FileType;
/* Returns "file", "directory", "link" or "other". */
const char *file_type_name(FileType type);

typedef struct FileStat {
        FileType type;
        uint64_t size;        /* In bytes. */
        uint64_t modified_ms; /* Milliseconds since the epoch. */
        unsigned mode;        /* Permission bits. */
        char *target;         /* Target of a readable symlink, owned; NULL otherwise. */
} FileStat;
void file_stat_clear(FileStat *stat);

/* The first directory below the requested path that a walk could not list. */
typedef struct FilesMissed {
        /* 0 if none was missed. -E2BIG: nested too deeply, or too many entries; -ENAMETOOLONG: a
         * path below it is too long; or -EACCES. */
        int error;
        char path[PATH_MAX]; /* Relative to the requested path; "" is that path itself. */
} FilesMissed;

/* Borrows root_fd. Returns 0 or -ENOMEM. */
int files_new(int root_fd, const char *cwd, Files **ret, Error *reterr);
/* Makes notes of unfinished files in that directory from now on; dir_fd is borrowed
 * (files/unfinished.h). */
void files_note_in(Files *files, int dir_fd);
/* Lets errors say that the plan hides or guards a path; plan is borrowed. */
void files_know_plan(Files *files, const LaunchPlan *plan);
/* NULL is legal; returns NULL. */
Files *files_free(Files *files);

/* The functions below return 0, or a negative errno with an Error of one of these kinds:
 *
 * - ERROR_MISSING: the file does not exist.
 * - ERROR_EXISTS: the file exists already.
 * - ERROR_USAGE: wrong kind of file, invalid path, read-only, not permitted, or a mount point.
 * - ERROR_LIMIT: the disk is full, or there are more than 10 million entries.
 * - ERROR_BUSY: a process inside has a lease on the file.
 * - ERROR_SETUP: any other reason. */

/* Reads up to `length` bytes (at most FILES_READ_MAX) from `offset`. *ret is owned, and ends in a
 * NUL that is not counted. *ret_eof is true if these bytes end the file. */
int files_read(Files *files, const char *path, uint64_t offset, uint64_t length, char **ret,
               size_t *ret_length, bool *ret_eof, Error *reterr);
/* Opens a file for reading, for a client. The caller owns the fd. */
int files_open_read(Files *files, const char *path, int *ret_fd, Error *reterr);

/* Replaces the whole file at once: a new file beside it is written, flushed and renamed over it. So
 * a reader sees the old or the new file, even after a crash. make_parents also makes missing
 * directories. A mode of 0 keeps the old file's mode, or is 0644. A symlink at the end of path is
 * followed. A keeper that is killed meanwhile may leave a file named ".holt-" and 16 digits beside
 * it, until the next keeper starts (files/unfinished.h). */
int files_write(Files *files, const char *path, const void *data, size_t length, unsigned mode,
                bool make_parents, Error *reterr);
/* Appends in place, and makes a missing file. *ret_size is the file's size afterwards; ret_size may
 * be NULL. */
int files_append(Files *files, const char *path, const void *data, size_t length,
                 uint64_t *ret_size, Error *reterr);

/* Does the same as files_write() with the data from the current offset of source_fd to its end. It
 * works in steps, so that the caller can serve others in between. source_fd is taken over even on
 * failure. The caller owns *ret. */
typedef struct FilesUpload FilesUpload;
int files_upload_new(Files *files, const char *path, int source_fd, unsigned mode,
                     bool make_parents, FilesUpload **ret, Error *reterr);
/* Copies at most 4 MiB, and waits only for the disk. Returns 1 at the end; 0 before it; -EAGAIN
 * without an error if source_fd has no data now; or another negative errno. */
int files_upload_step(FilesUpload *upload, Error *reterr);
/* Moves the complete file to its place. */
int files_upload_settle(FilesUpload *upload, Error *reterr);
/* Whether the source is a regular file, whose size is known. */
bool files_upload_is_regular(const FilesUpload *upload);
/* Returns the bytes copied so far. */
uint64_t files_upload_length(const FilesUpload *upload);
/* Removes a file that is not in its place. NULL is legal; returns NULL. */
FilesUpload *files_upload_free(FilesUpload *upload);

/* follow: follow a symlink at the end of path. */
int files_stat(Files *files, const char *path, bool follow, FileStat *ret, Error *reterr);
/* Follows symlinks; a symlink to a missing file does not exist. */
int files_exists(Files *files, const char *path, bool *ret, Error *reterr);
/* A mode of 0 means 0755; the umask applies. With make_parents, the directory may exist already. */
int files_mkdir(Files *files, const char *path, unsigned mode, bool make_parents, Error *reterr);
/* Makes a symlink with this target, which may be missing. Returns -EEXIST if path exists. */
int files_link(Files *files, const char *path, const char *target, Error *reterr);
/* A directory that is not empty needs `recursive`; any depth is possible. Symlinks are not
 * followed. */
int files_remove(Files *files, const char *path, bool recursive, Error *reterr);
/* Does the same for an entry of a host directory. Commands may have left it deep, without
 * permissions and full of symlinks. A missing entry is no error. Returns 0 or a negative errno for
 * files_fail(). */
int files_remove_tree(int dir_fd, const char *name);
/* Does the same for the entry `name`, from which the O_PATH descriptor fd was opened. Returns
 * -EAGAIN if the name leads to another directory by now, and leaves that untouched. */
int files_remove_opened(int dir_fd, const char *name, int fd);
/* Renames; between mounts it copies instead, all or nothing. With replace, `to` may exist, except
 * as a directory that is not empty. */
int files_move(Files *files, const char *from, const char *to, bool replace, Error *reterr);
/* Copies symlinks as symlinks. Files of other kinds, such as fifos, are left out and counted. The
 * copy appears at `to` once it is complete; replace as above. */
int files_copy(Files *files, const char *from, const char *to, bool recursive, bool replace,
               uint64_t *ret_left_out, Error *reterr);

/* Receives one entry. name is relative to the requested path, and may contain any bytes except NUL.
 * Returns 0, or a negative errno that ends the listing. */
typedef int (*FilesEntryFn)(void *data, const char *name, const FileStat *stat);
/* Lists names in byte order: those behind `after` ("" for all), at most `limit` of them. A limit of
 * 0 means FILES_LIST_MAX. *ret_more is true if further names exist. recursive lists subdirectories
 * too; symlinks are not followed. *ret_missed names a directory whose entries are not all listed.
 * It may omit a directory that lies before `after`. /proc and /sys below path are skipped. */
int files_list(Files *files, const char *path, bool recursive, const char *after, uint64_t limit,
               FilesEntryFn fn, void *data, bool *ret_more, FilesMissed *ret_missed, Error *reterr);
/* Lists regular files at any depth below path whose names start with prefix, in the same way. */
int files_list_below(Files *files, const char *path, const char *prefix, const char *after,
                     uint64_t limit, FilesEntryFn fn, void *data, bool *ret_more,
                     FilesMissed *ret_missed, Error *reterr);
/* Finds paths below path that match pattern: "*" and "?" within a name, "[...]", and "**" for any
 * directories; see glob.h. Passes the first `limit` of them to fn, in byte order. *ret_more is also
 * true if the tree is too deep or too large to search. */
int files_glob(Files *files, const char *path, const char *pattern, uint64_t limit, FilesEntryFn fn,
               void *data, bool *ret_more, Error *reterr);
/* Finds lines that match the POSIX extended regular expression (grep-pattern.h) in regular files at
 * or below path. Files with a NUL in their first 8 KiB are skipped. line counts from 1. If path is
 * a file, name is its name. glob, or NULL, selects files below path; without a "/" it matches at
 * any depth. *ret_more is also true if the search ended after 256 MiB or 10 seconds. */
typedef int (*FilesGrepFn)(void *data, const char *name, uint64_t line, const char *text);
int files_grep(Files *files, const char *path, const char *pattern, bool ignore_case,
               const char *glob, uint64_t limit, FilesGrepFn fn, void *data, bool *ret_more,
               Error *reterr);
