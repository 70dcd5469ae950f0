/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the readers of `holt serve` (keeper/connect.h), and reaps them. */
#pragma once

#include <stdbool.h>

#include "base/loop.h"

/* Readers of one server at a time. */
enum { READERS_MAX = 16 };

typedef struct Readers {
        Loop *loop;
        size_t count;
        /* Called from the loop when a reader has ended, so that another one may start. */
        void (*on_end)(void *data);
        void *data;
} Readers;

bool readers_full(const Readers *readers);
/* Starts a reader of the session. *ret_fd is the client's end of its socket, which the caller owns.
 * *ret_pidfd is for readers_end(). Returns 0 or a negative errno. */
int readers_start(Readers *readers, const char *session, int *ret_fd, int *ret_pidfd,
                  Error *reterr);
/* Kills a reader, which may wait for a disk, and closes pidfd. FD_NONE is legal. */
void readers_end(int pidfd);
