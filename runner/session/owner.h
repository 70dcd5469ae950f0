/* SPDX-License-Identifier: Apache-2.0 */
/* A session that is somebody's own, and goes with who made it (session.create's owned).
 *
 * Theory of operation. In its directory is a FIFO, "owner", which its owner holds open for writing
 * as long as the session is to be there. When the owner lets go, however that comes, the kernel
 * tells the keeper, which ends; and a keeper that is started finds that nobody holds it, and does
 * not start. So what an owner leaves that was killed is a directory at rest that nobody can use:
 * whoever makes sessions or serves them takes it away when he comes by. A session without that file
 * is nobody's own. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

typedef struct Owner {
        int dir_fd;  /* O_PATH of the session's directory, so that it is known whatever its name */
        int hold_fd; /* the FIFO; closed, the session is given up */
} Owner;

/* clang-format off */
#define OWNER_NONE { .dir_fd = FD_NONE, .hold_fd = FD_NONE }
/* clang-format on */

/* Before the session in the directory path is published, so that nobody sees it without an owner.
 * 0 or a negative errno. */
int owner_make(const char *path, Owner *ret, Error *reterr);
void owner_clear(Owner *owner);

/* For the keeper: an fd that hangs up (EPOLLHUP) when the owner lets go, and FD_NONE in a session
 * that is nobody's own. -ENOENT with an ERROR_MISSING where the owner has gone. */
int owner_watch(int dir_fd, int *ret_fd, Error *reterr);

/* Whether the session had an owner who has gone. */
bool owner_is_gone(int dir_fd);

/* Takes a session away that owner_is_gone(), once it is at rest; does nothing with any other, or
 * where there is none. 0 or a negative errno. */
int owner_take_away(const char *name, Error *reterr);
