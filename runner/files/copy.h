/* SPDX-License-Identifier: Apache-2.0 */
/* Contents from fd to fd, and new files beside the old. Negative errnos; see path.h. */
#pragma once

#include "files/unfinished.h"

/* From where source_fd stands to its end. A regular file is copied up to the size that it has at
 * the start, so that who keeps adding to it holds nobody, and its holes stay holes. to_fd is new
 * and empty. Anything else is read to its end, as slowly as it comes. */
int files_copy_contents(int source_fd, int to_fd, uint64_t *ret_length);

/* The same of a regular file in steps. */
typedef struct FilesCopying {
        int source_fd, to_fd;  /* borrowed */
        bool regular;          /* otherwise there are no steps */
        off_t start, at, size; /* in the source */
        uint64_t length;       /* that to_fd has */
} FilesCopying;

/* 0 or a negative errno of fstat(2). */
int files_copying_begin(int source_fd, int to_fd, FilesCopying *ret);
/* Copies most bytes at most; a hole counts as none. 1: that was all; 0; or a negative errno. */
int files_copying_step(FilesCopying *copying, uint64_t most);

/* A file that is not yet at its place: in the same directory, without a name where the file system
 * can do that, until it is renamed.
 *
 * Who can write in that directory can exchange the new file for something else before it is
 * renamed. Then that gets the name: nothing that they could not have done without us, and the host
 * has written only to the file that it has made. */
typedef struct NewFile {
        FilesPlace place;
        int fd;                       /* open for writing */
        const UnfinishedNotes *notes; /* borrowed, or NULL */
        Unfinished unfinished;        /* while it has its temporary name */
} NewFile;

#define NEW_FILE_NONE                                                                              \
        ((NewFile){ .place = FILES_PLACE_NONE, .fd = FD_NONE, .unfinished = UNFINISHED_NONE })

/* Finds the place for path and makes the file. *mode: 0 becomes that of what is there, or 0644. */
int new_file_begin(const Files *files, const char *path, unsigned *mode, bool make_parents,
                   NewFile *ret);
/* Makes the file in file->place.dir_fd, mode 0600. */
int new_file_make(NewFile *file);
/* Gives it mode and its name; replaces what is there, where replace. -EBUSY: a mount is there. */
int new_file_settle(NewFile *file, unsigned mode, bool replace);
/* Removes what was not settled. */
void new_file_clear(NewFile *file);

/* renameat2(2) with RENAME_NOREPLACE unless replace, where the file system knows of that. */
int files_rename(const FilesPlace *from, const FilesPlace *to, bool replace);
