/* SPDX-License-Identifier: Apache-2.0 */
/* A directory on the host that is filled under a name of its own before it gets its place, and that
 * a kill -9 leaves.
 *
 * Theory of operation. Before it is made a file in the session's own directory, which no command
 * inside sees, says where; who makes it holds a lock on that file (flock(2)) as long as it lives.
 * So the next holt cp of the session, where it gets the lock, knows that nobody is at it any more,
 * and takes the directory away: by the way that any path of the caller's is walked, and only the
 * very one that was made, whose identity (base/file-id.h) is noted once it is there. Until then
 * there is nothing in it. */
#pragma once

#include "files/path.h"
#include "rpc/client.h"

typedef struct Copying {
        int dir_fd, fd; /* the session's directory; the note, locked */
        char note[40];
} Copying;

#define COPYING_NONE ((Copying){ .dir_fd = FD_NONE, .fd = FD_NONE })

/* name, of new_file_name()'s, is about to be made in the directory above_fd. What can't be noted is
 * made all the same. */
void copying_begin(Copying *copying, const char *session, int above_fd, const char *name);
/* It is there: fd. */
void copying_made(const Copying *copying, int fd);
/* It has its place, or is gone. */
void copying_end(Copying *copying);

/* Takes away a directory with all that is in it, as far as that can be done. */
void copying_discard(const FilesPlace *place);
/* Takes away what killed clients of the session have left. */
void copying_sweep(RpcClient *client, const char *session);
