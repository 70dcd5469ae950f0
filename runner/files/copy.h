/* SPDX-License-Identifier: Apache-2.0 */
/* Copies contents from fd to fd, and makes new files beside the old. Functions return negative
 * errnos; see path.h. */
#pragma once

#include "files/unfinished.h"

/* Copies from the current offset of source_fd to its end. A regular file is copied up to its size
 * at the start, so that a process that keeps appending holds nobody up. Its holes stay holes. to_fd
 * is new and empty. Other sources are read to their end, however slowly data arrives. */
int files_copy_contents(int source_fd, int to_fd, uint64_t *ret_length);

/* Copies a regular file in steps. */
typedef struct FilesCopying {
        int source_fd, to_fd;  /* Borrowed. */
        bool regular;          /* If false, there are no steps. */
        off_t start, at, size; /* Offsets in the source. */
        uint64_t length;       /* Bytes that to_fd has. */
} FilesCopying;

/* Returns 0 or a negative errno of fstat(2). */
int files_copying_begin(int source_fd, int to_fd, FilesCopying *ret);
/* Copies at most `most` bytes; holes do not count. Returns 1 at the end, 0 before it, or a negative
 * errno. */
int files_copying_step(FilesCopying *copying, uint64_t most);

/* A file that is not yet in its place. Until it is renamed, it is in the same directory, without a
 * name if the file system supports that.
 *
 * A process that can write in that directory can replace the new file before the rename, and then
 * the replacement gets the name. That process could have done the same without holt, and the host
 * has written only to the file that it made. */
typedef struct NewFile {
        FilesPlace place;
        int fd;                       /* Open for writing. */
        const UnfinishedNotes *notes; /* Borrowed, or NULL. */
        Unfinished unfinished;        /* Its note, while it has a temporary name. */
} NewFile;

#define NEW_FILE_NONE                                                                              \
        ((NewFile){ .place = FILES_PLACE_NONE, .fd = FD_NONE, .unfinished = UNFINISHED_NONE })

/* Finds the place for path and makes the file. A *mode of 0 becomes the mode of the existing file,
 * or 0644. */
int new_file_begin(const Files *files, const char *path, unsigned *mode, bool make_parents,
                   NewFile *ret);
/* Makes the file in file->place.dir_fd, with mode 0600. */
int new_file_make(NewFile *file);
/* Gives the file its mode and name; with replace, it replaces an existing file. Returns -EBUSY for
 * a mount point. */
int new_file_settle(NewFile *file, unsigned mode, bool replace);
/* Removes a file that was not settled. */
void new_file_clear(NewFile *file);

/* Calls renameat2(2), with RENAME_NOREPLACE unless replace is true, if the file system supports
 * that flag. */
int files_rename(const FilesPlace *from, const FilesPlace *to, bool replace);
