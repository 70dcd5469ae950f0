/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper as its clients see it: a process that they start and connect to. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/wait.h"

enum {
        KEEPER_READY_FD = 3,     /* a pipe: one byte when the keeper is ready, or an Error */
        KEEPER_DIRECTORY_FD = 4, /* O_PATH of the session's directory */
};

/* usec: a keeper that is not ready by then, or has not ended, is killed (end.c). */
enum { KEEPER_START_TIME = HOLT_WAIT(20000000), KEEPER_END_TIME = HOLT_WAIT(10000000) };

/* The verb of the keeper itself; argv[1] is the session's name, fds as above. Returns an exit code.
 */
int keeper_main(int argc, char **argv);

/* A connection to the keeper of session name, which is started where there is none. 0, or a
 * negative errno with the keeper's own error where it could not start. */
int keeper_connect(const char *name, int *ret_fd, Error *reterr);
/* Whether to connect again, after a pause, and ask once more what was answered r: the keeper had
 * gone before it read the request (-ECONNRESET), or its sandbox before it was told (-ESHUTDOWN), so
 * that nothing was done. *tries is 0 at first. */
bool keeper_may_retry(int r, unsigned *tries);
