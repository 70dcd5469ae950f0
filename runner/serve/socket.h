/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of `holt serve --socket`, which may lie in a directory that a sandbox writes.
 *
 * Theory of operation. A command that can replace the socket can answer the server's clients. Which
 * sandbox can do that is known in two places. So a server notes the path of its socket in the
 * store, as a symlink in the directory "sockets", and every sandbox that starts hides the sockets
 * noted there (reach/own-store.c). A sandbox that has started before does not: the server
 * refuses a path that a live session can write. It does not know of a `holt run`. */
#pragma once

#include "base/error.h"

typedef struct ServeSocket {
        const char *path; /* as it was given, borrowed */
        char *note;       /* in the store; owned */
} ServeSocket;

/* Listens at path, and notes it in the store. *ret_fd is the caller's. 0, or a negative errno:
 * -EPERM if a live session can write there. */
int serve_socket_open(ServeSocket *socket, const char *path, int *ret_fd, Error *reterr);
/* Removes the socket and its note. What was never opened is legal. */
void serve_socket_close(ServeSocket *socket);
