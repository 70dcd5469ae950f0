/* SPDX-License-Identifier: Apache-2.0 */
/* Files as the sandbox sees them, from the host's side.
 *
 * Theory of operation. The keeper holds an O_PATH fd of the sandbox's own root, in the sandbox's
 * own mount namespace. Every path is resolved below it by openat2(2) with RESOLVE_IN_ROOT |
 * RESOLVE_NO_MAGICLINKS: the kernel walks what the command would walk, its mounts, its links ("/"
 * and ".." at the top are that root), and can't leave it. So there is one view, and what is
 * read-only, hidden or protected inside is so here. Nobody's process inside takes part. A mount
 * point itself is neither replaced, renamed nor removed.
 *
 * What is found is an attacker's all the same: only regular files are read or written (a fifo, a
 * device, a file of /proc or /sys is refused, and never opened), sizes are looked at after the open
 * and never trusted, and what lies between two calls may be exchanged.
 *
 * Paths are absolute, or relative to cwd as given to files_new(). All calls block only for the
 * disk; contents are moved through a buffer of 128 KiB at most, whatever their size. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strings.h"
#include "policy/plan.h"

enum {
        FILES_READ_MAX = 512 * 1024, /* bytes that one files_read() gives */
        FILES_LIST_MAX = 10000,      /* entries of one listing, glob or grep */
        FILES_DEPTH_MAX = 1024,      /* nesting depth of directories that a walk goes down to */
        FILES_GREP_LINE_MAX = 4096,  /* bytes of a line that grep shows; the rest is cut */
};

typedef struct Files Files;

typedef enum FileType {
        FILE_REGULAR,
        FILE_DIRECTORY,
        FILE_LINK,
        FILE_OTHER, /* fifo, socket, device */
        FILE_TYPE_MAX,
} FileType;
/* "file", "directory", "link", "other" */
const char *file_type_name(FileType type);

typedef struct FileStat {
        FileType type;
        uint64_t size;        /* bytes */
        uint64_t modified_ms; /* since the epoch */
        unsigned mode;        /* permission bits */
        char *target;         /* of a link that can be read; owned; NULL otherwise */
} FileStat;
void file_stat_clear(FileStat *stat);

/* The first directory below the path asked for that a walk could not look into. */
typedef struct FilesMissed {
        int error;           /* 0: there is none. -E2BIG: nested too deeply, or too many entries;
                              * -ENAMETOOLONG: a path below it is too long; or -EACCES */
        char path[PATH_MAX]; /* relative to the path asked for; "" is that path */
} FilesMissed;

/* root_fd is borrowed. 0 or -ENOMEM. */
int files_new(int root_fd, const char *cwd, Files **ret, Error *reterr);
/* From now on unfinished files are noted in that directory, which is borrowed
 * (files/unfinished.h). */
void files_note_in(Files *files, int dir_fd);
/* What it hides and guards is told by errors as that; it is borrowed. */
void files_know_plan(Files *files, const LaunchPlan *plan);
/* NULL is legal; returns NULL. */
Files *files_free(Files *files);

/* Each returns 0 or a negative errno with an Error whose kind is ERROR_MISSING (not there),
 * ERROR_EXISTS, ERROR_USAGE (no such kind of file, a path that is none, read-only, not permitted, a
 * mount point), ERROR_LIMIT (the disk, more than 10 million entries), ERROR_BUSY (somebody inside
 * has a lease on the file), or ERROR_SETUP. */

/* Up to length bytes (FILES_READ_MAX at most) from offset; *ret is owned, with a NUL behind it.
 * *ret_eof: the file ends with what was read. */
int files_read(Files *files, const char *path, uint64_t offset, uint64_t length, char **ret,
               size_t *ret_length, bool *ret_eof, Error *reterr);
/* An fd open for reading, to be handed to whoever has asked; owned by the caller. */
int files_open_read(Files *files, const char *path, int *ret_fd, Error *reterr);

/* Replaces the whole file at once: a new one beside it, flushed, then renamed over it; a reader
 * sees the old or the new, and so it is after a crash. Parents are made where make_parents. mode 0
 * keeps that of what was there, or 0644. A link at the end of path is followed to what it names.
 * A keeper that is killed meanwhile may leave ".holt-" and 16 digits beside it, until the next one
 * starts (files/unfinished.h). */
int files_write(Files *files, const char *path, const void *data, size_t length, unsigned mode,
                bool make_parents, Error *reterr);
/* In place; makes the file where there is none. *ret_size is the file's then; ret_size may be NULL.
 */
int files_append(Files *files, const char *path, const void *data, size_t length,
                 uint64_t *ret_size, Error *reterr);
/* The same as files_write() from where an fd stands to its end; *ret_length is what was copied,
 * holes too. What is no regular file is waited for. */
int files_write_fd(Files *files, const char *path, int source_fd, unsigned mode, bool make_parents,
                   uint64_t *ret_length, Error *reterr);

/* The same in steps, so that whoever serves others as well gets to them in between. source_fd is
 * taken over in any case. *ret is owned by the caller. */
typedef struct FilesUpload FilesUpload;
int files_upload_new(Files *files, const char *path, int source_fd, unsigned mode,
                     bool make_parents, FilesUpload **ret, Error *reterr);
/* Copies 4 MiB at most, and waits for nothing but the disk. 1: that was all; 0: there is more to
 * do; -EAGAIN without an error: nothing comes from source_fd now; or another error. */
int files_upload_step(FilesUpload *upload, Error *reterr);
/* Puts the file in its place, once all is there. */
int files_upload_settle(FilesUpload *upload, Error *reterr);
/* Whether it comes from a file, of which it is known how much there is. */
bool files_upload_is_regular(const FilesUpload *upload);
/* Bytes so far. */
uint64_t files_upload_length(const FilesUpload *upload);
/* What is not at its place goes. NULL is legal; returns NULL. */
FilesUpload *files_upload_free(FilesUpload *upload);

/* follow: a link at the end of path is followed. */
int files_stat(Files *files, const char *path, bool follow, FileStat *ret, Error *reterr);
/* Follows; a link to nothing is nothing. */
int files_exists(Files *files, const char *path, bool *ret, Error *reterr);
/* mode 0 is 0755; the umask is taken off. make_parents: one that is there will do. */
int files_mkdir(Files *files, const char *path, unsigned mode, bool make_parents, Error *reterr);
/* A directory that is not empty takes recursive, and may be of any depth. No link is followed. */
int files_remove(Files *files, const char *path, bool recursive, Error *reterr);
/* The same of what has that one name in a directory of the host's: what commands have left may be
 * deep, closed and full of links. Nothing there is no error. 0 or a negative errno, which
 * files_fail() puts into words. */
int files_remove_tree(int dir_fd, const char *name);
/* Renames, across mounts by copying, all or nothing. replace: what is at to may be replaced, but
 * for a directory that is not empty. */
int files_move(Files *files, const char *from, const char *to, bool replace, Error *reterr);
/* Links are copied as links; what is neither file, directory nor link is left out and counted.
 * Appears at to when all is copied; replace as above. */
int files_copy(Files *files, const char *from, const char *to, bool recursive, bool replace,
               uint64_t *ret_left_out, Error *reterr);

/* name is relative to what was asked for, and any bytes but NUL. Returns 0 or a negative errno that
 * ends the listing. */
typedef int (*FilesEntryFn)(void *data, const char *name, const FileStat *stat);
/* In byte order of names; behind after ("" from the start), limit at most; *ret_more: there are
 * others. recursive goes down, and no link is followed. A limit of 0 is FILES_LIST_MAX. *ret_missed
 * names a directory whose entries are not all listed; a page that begins behind "after" may omit
 * those before it. /proc and /sys below path are passed over. */
int files_list(Files *files, const char *path, bool recursive, const char *after, uint64_t limit,
               FilesEntryFn fn, void *data, bool *ret_more, FilesMissed *ret_missed, Error *reterr);
/* Regular files at any depth below path whose names start with prefix, in the same way. */
int files_list_below(Files *files, const char *path, const char *prefix, const char *after,
                     uint64_t limit, FilesEntryFn fn, void *data, bool *ret_more,
                     FilesMissed *ret_missed, Error *reterr);
/* Paths below path that match pattern: "*" and "?" within a name, "[...]", "**" for any
 * directories; see glob.h. The first limit of them in byte order. *ret_more is set, too, where the
 * tree is too deep or too large to be looked through. */
int files_glob(Files *files, const char *path, const char *pattern, uint64_t limit, FilesEntryFn fn,
               void *data, bool *ret_more, Error *reterr);
/* Lines of regular files at or below path that match the POSIX extended regular expression; files
 * with a NUL in their first 8 KiB are passed over. line counts from 1. name is that of the file
 * where path is one. glob, or NULL, is for the files below path; without a "/" it is matched at any
 * depth. *ret_more is set, too, where it ended after 256 MiB or 10 seconds. The pattern:
 * grep-pattern.h. */
typedef int (*FilesGrepFn)(void *data, const char *name, uint64_t line, const char *text);
int files_grep(Files *files, const char *path, const char *pattern, bool ignore_case,
               const char *glob, uint64_t limit, FilesGrepFn fn, void *data, bool *ret_more,
               Error *reterr);
