/* SPDX-License-Identifier: Apache-2.0 */
/* Files and directories that are made, or removed, over time, by a process that may be killed at
 * any moment.
 *
 * Theory of operation. Such a thing has a temporary name, ".holt-" and 16 random digits, until it
 * is complete and is renamed to its place. Before it exists, its maker writes a note: a file in a
 * directory of holt's own, which no sandbox sees. The maker holds a lock on the note (flock(2)),
 * and the kernel drops the lock when the maker dies. Once the thing has its place, or is removed,
 * the maker removes the note.
 *
 * unfinished_sweep() tries the lock of each note. If it gets the lock, the maker is dead, and it
 * removes the thing and then the note. Nothing is swept on a file system without locks.
 *
 * The name of a note has the digits of the thing's name. Its content says which thing is meant:
 *
 * - Nothing: the thing lies beside the note. Only holt writes there, so the name is enough.
 * - A path: the thing lies in that directory, where others can write too. Once the thing
 *   exists, its identity (base/file-id.h) follows. The sweep removes only the thing with this
 *   identity; anything else that has the name by then stays. If the maker died before it wrote the
 *   identity, it had not filled the thing yet. Then the sweep removes the thing only if it is
 *   empty.
 *
 * The sweep looks the path up again, although directories and symlinks on the way may have changed.
 * Each user of this module chooses how it looks the path up:
 *
 *   prefix               thing                                  path        swept by
 *   UNFINISHED_SESSION   a session that is made or removed      beside      create, rm, ls
 *   UNFINISHED_INSIDE    files and trees of a keeper in its     seen from   the next keeper
 *                        sandbox, directories that clients      inside
 *                        own (files/staged.h)
 *   UNFINISHED_OUTSIDE   a directory that holt cp -r fills on   the         the next holt cp
 *                        the host                               caller's
 *
 * If a note cannot be written, for example on a full disk, the thing is made without one.
 *
 * A session whose owner was killed needs no note. It is complete, and its keeper may still run, so
 * it must be stopped first; this folder knows no keepers. The FIFO in its own directory says
 * whether the owner lives (session/owner.h). The next process that creates or serves sessions
 * removes it.
 *
 * A thread may make its own notes while others make theirs. */
#pragma once

#include <stdbool.h>

#include "base/strings.h"
#include "files/path.h"

#define UNFINISHED_SESSION ".session-"
#define UNFINISHED_INSIDE ".inside-"
#define UNFINISHED_OUTSIDE ".outside-"

enum { UNFINISHED_NAME_SIZE = 32 }; /* Bytes of a name, including its NUL. */

/* Makes a new name that nobody can guess. */
void unfinished_name(char ret[UNFINISHED_NAME_SIZE]);
bool unfinished_is_name(const char *name);

/* --- making --- */

typedef struct Unfinished {
        char name[UNFINISHED_NAME_SIZE]; /* Name of the thing; "" if there is no note. */
        char note[UNFINISHED_NAME_SIZE];
        int notes_fd; /* Borrowed from UnfinishedNotes. */
        int fd;       /* The locked note; FD_NONE if there is no note. */
} Unfinished;

#define UNFINISHED_NONE ((Unfinished){ .notes_fd = FD_NONE, .fd = FD_NONE })

/* Notes that a thing is about to be made in the directory dir_fd; FD_NONE means beside the note.
 * name is the thing's, and must have passed unfinished_is_name(); NULL makes a new one. Without
 * notes, or without their directory, nothing is noted. */
void unfinished_begin(const UnfinishedNotes *notes, int dir_fd, const char *name, Unfinished *ret);
/* Adds the thing's identity to its note. Call it with an open fd of the thing before the thing is
 * filled. */
void unfinished_made(const Unfinished *unfinished, int fd);
/* Removes the note: the thing has its place, or no longer exists. */
void unfinished_end(Unfinished *unfinished);
/* Leaves the thing and its note to the next sweep. */
void unfinished_leave(Unfinished *unfinished);

/* --- clearing up --- */

/* Opens the directory at path in ret->dir_fd, with the last part of path in ret->name. Returns 0 or
 * a negative errno; -ENOENT and -ENOTDIR mean that the thing cannot exist any more. */
typedef int (*UnfinishedPlaceFn)(void *data, const char *path, FilesPlace *ret);

/* Lists the names of the notes. Returns 0, -ENOMEM or another negative errno. */
int unfinished_list(const UnfinishedNotes *notes, StrList *ret);
/* Removes everything unfinished whose maker is dead. A thing that cannot be removed keeps its note.
 * place may be NULL if everything lies beside its note.
 *
 * names is NULL, or from unfinished_list(): then only these notes are swept, and all of their
 * makers are known to be dead or dying. For each note, the sweep waits up to a second until the
 * kernel has dropped the lock. */
void unfinished_sweep(const UnfinishedNotes *notes, const StrList *names, UnfinishedPlaceFn place,
                      void *data);
