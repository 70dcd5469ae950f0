/* SPDX-License-Identifier: Apache-2.0 */
/* Directories that a client fills before they get their place by files.move, as `holt cp -r` does:
 * files.mkdir with owned.
 *
 * Theory of operation. Such a directory has a temporary's name and is noted as one
 * (files/temporaries.h): where the keeper is killed it goes with the next. Where the connection
 * of its client ends, and it is there still, it is taken away; under another such name first, so
 * that of a files.move that goes on meanwhile all is moved or nothing. */
#pragma once

#include "files/work.h"

enum { STAGED_MAX = 256 }; /* of all connections together */

typedef struct Staged Staged;

/* files and works are borrowed until staged_free(). 0 or -ENOMEM. */
int staged_new(Files *files, Works *works, Staged **ret, Error *reterr);
/* Leaves the directories to the next keeper. NULL is legal; returns NULL. */
Staged *staged_free(Staged *all);

/* Makes the directory at path, mode as of files_mkdir(). -EINVAL with an ERROR_USAGE for another
 * name, -EBUSY with an ERROR_LIMIT; or an error of files_mkdir(), -ENOMEM. */
int staged_make(Staged *all, const RpcConnection *connection, const char *path, unsigned mode,
                Error *reterr);
/* The connection has ended: what is there of it goes, in the background. */
void staged_forget(Staged *all, const RpcConnection *connection);
