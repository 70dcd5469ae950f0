/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that end with the client that created them (session.create with owned).
 *
 * Theory of operation. The session's directory has a FIFO called "owner". The owner holds it open
 * for writing as long as the session must exist. When the owner closes it or dies, the kernel
 * notifies the keeper, which ends. A keeper that starts later finds that no process has the FIFO
 * open, and refuses to start. So a killed owner leaves a directory at rest that nobody can use; the
 * next process that creates or serves sessions removes it. A session without that file has no
 * owner. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

typedef struct Owner {
        int dir_fd;  /* O_PATH of the session's directory, which identifies it even under another
                        name. */
        int hold_fd; /* The FIFO; closing it gives the session up. */
} Owner;

/* clang-format off */
#define OWNER_NONE { .dir_fd = FD_NONE, .hold_fd = FD_NONE }
/* clang-format on */

/* Makes the FIFO in the directory path, before the session is published. So the session has an
 * owner from the start. Returns 0 or a negative errno. */
int owner_make(const char *path, Owner *ret, Error *reterr);
void owner_clear(Owner *owner);

/* For the keeper: stores an fd that hangs up (EPOLLHUP) when the owner lets go, or FD_NONE in a
 * session without an owner. Returns -ENOENT with an ERROR_MISSING if the owner has gone. */
int owner_watch(int dir_fd, int *ret_fd, Error *reterr);

/* Whether the session had an owner who has gone. */
bool owner_is_gone(int dir_fd);

/* Removes a session for which owner_is_gone() is true, once it is at rest. Other sessions stay, and
 * a missing one is no error. Returns 0 or a negative errno. */
int owner_take_away(const char *name, Error *reterr);
