/* SPDX-License-Identifier: Apache-2.0 */
/* A session at rest whose settings this process changes. The process holds the session's lock
 * meanwhile, so no keeper starts with the old settings. */
#pragma once

#include <limits.h>

#include "session/settings.h"

typedef struct AtRest {
        int dir_fd, lock_fd; /* owned */
        char path[PATH_MAX]; /* the session's directory */
        Settings settings;   /* owned */
        Store *store;        /* owned; open for writing */
} AtRest;

/* The versions of clang-format disagree about this macro. */
/* clang-format off */
#define AT_REST_NONE                                                                               \
        { .dir_fd = FD_NONE, .lock_fd = FD_NONE }
/* clang-format on */

/* Locks the session and reads its settings. Close *ret after a failure, too. Returns -EWOULDBLOCK
 * with an ERROR_BUSY if the session is live, or another negative errno. */
int at_rest_open(const char *session, AtRest *ret, Error *reterr);
void at_rest_close(AtRest *rest);
