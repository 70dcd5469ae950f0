/* SPDX-License-Identifier: Apache-2.0 */
/* Directories that a client makes by files.mkdir with `owned`, and fills before files.move gives
 * them their place. `holt cp -r` makes such directories.
 *
 * Theory of operation. Such a directory is unfinished (files/unfinished.h): if the keeper is
 * killed, the next keeper removes it. If the connection of its client ends before the directory has
 * its place, this keeper removes it. It renames the directory first, so that a files.move which
 * runs at that moment moves all of it or nothing. */
#pragma once

#include "files/work.h"

enum { STAGED_MAX = 256 }; /* Directories of all connections together. */

typedef struct Staged Staged;

/* Borrows files and works until staged_free(). Returns 0 or -ENOMEM. */
int staged_new(Files *files, Works *works, Staged **ret, Error *reterr);
/* Leaves the directories to the next keeper. NULL is legal; returns NULL. */
Staged *staged_free(Staged *all);

/* Makes the directory at path, with mode as for files_mkdir(). Returns -EINVAL with an ERROR_USAGE
 * for an invalid name, -EBUSY with an ERROR_LIMIT, -ENOMEM, or an error of files_mkdir(). */
int staged_make(Staged *all, const RpcConnection *connection, const char *path, unsigned mode,
                Error *reterr);
/* Removes the directories of a connection that has ended, in the background. */
void staged_forget(Staged *all, const RpcConnection *connection);
