/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of holt cp. cp.c reads the command line, cp-put.c copies a
 * directory into the session, and cp-get.c copies one out of it. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/copied.h"
#include "files/path.h"
#include "rpc/client.h"
#include "session/directory.h"

typedef struct CpOptions {
        bool json, recursive;
} CpOptions;

typedef struct Cp {
        CpOptions options;
        RpcClient *client;
        char session[SESSION_NAME_MAX + 1];
        Copied copied;
        const char *made; /* borrowed: name of the directory being filled on the host, or NULL */
        UnfinishedNotes notes; /* notes about such directories, for clearing up after a kill */
} Cp;

/* Copies a directory of the host to target, a path in the session that must not exist yet. Returns
 * 0 or a negative errno. */
int cp_put_directory(Cp *cp, const char *directory, const char *target, Error *reterr);

/* Copies the directory at path in the session to target, a path on the host that must not exist
 * yet. Returns 0 or a negative errno. */
int cp_get_directory(Cp *cp, const char *path, const char *target, Error *reterr);

/* Returns whether path lies in the temporary directory `made`, whose name is random. holt cp
 * would otherwise copy its own new files, if the session's workspace lies in the copied host
 * directory. */
bool cp_is_own(const char *path, const char *made);

/* Fails because the directory at path cannot be read, and a copy must be complete. errnum: EACCES,
 * or any other number if a limit was reached. into: the copy goes into the session. Returns a
 * negative errno. */
int cp_refuse_missed(const char *path, int errnum, bool into, Error *reterr);

/* Refuses a destination that exists. Returns -EEXIST. */
int cp_refuse_existing(const char *target, Error *reterr);
