/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of `holt serve --socket`, which may lie in a directory that a sandbox can write.
 *
 * Theory of operation. A command that can replace the socket can answer the server's clients. Two
 * checks prevent that. The server notes the path of its socket in the store, as a symlink in the
 * directory "sockets". Every sandbox that starts later hides the sockets noted there
 * (reach/own-store.c). A sandbox that started earlier does not. So the server refuses a path that a
 * live session can write. It cannot detect a `holt run`. */
#pragma once

#include "base/error.h"

typedef struct ServeSocket {
        const char *path; /* borrowed: the path as it was given */
        char *note;       /* owned: name of the note in the store */
} ServeSocket;

/* Listens at path, and notes it in the store. The caller owns *ret_fd. Returns 0 or a negative
 * errno: -EPERM if a live session can write there. */
int serve_socket_open(ServeSocket *socket, const char *path, int *ret_fd, Error *reterr);
/* Removes the socket and its note. socket may be one that was never opened. */
void serve_socket_close(ServeSocket *socket);
