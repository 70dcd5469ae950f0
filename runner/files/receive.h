/* SPDX-License-Identifier: Apache-2.0 */
/* Receives files of any size from an fd that comes with a request.
 *
 * Theory of operation. A thread copies each file, and waits for the source and the disk, so that
 * the keeper's loop waits for neither. When the copy is complete and the client still exists, a
 * second thread moves it to its place, because that waits for the disk too. A thread touches its
 * upload and nothing else. The call is replied to when the file is in its place. If the connection
 * ends first, nothing of the file remains. A keeper that ends stops the copy.
 *
 * The threads are not among those of work.h: there, a thread that waits for its client would hold
 * up other clients. */
#pragma once

#include "files/files.h"
#include "rpc/server.h"

enum { RECEIVES_MAX = 32 }; /* Receives of all clients at the same time; each has a thread. */

typedef struct Receives Receives;

/* Borrows loop and files until receives_free(). Returns 0 or a negative errno. */
int receives_new(Loop *loop, Files *files, Receives **ret, Error *reterr);
/* Whether any receive is open. */
bool receives_busy(const Receives *all);
/* Must come after the end of their calls. NULL is legal; returns NULL. */
Receives *receives_free(Receives *all);

/* Writes the members of the reply beside size. */
typedef void (*ReceiveFn)(const RpcCall *call, JsonWriter *w);

/* Takes the call's fd, and replies to the call later; fn may be NULL. Returns 0, a negative errno
 * of files_upload_new(), -EBUSY with an ERROR_LIMIT at RECEIVES_MAX, or -EINVAL if no fd came. */
int receive_start(Receives *all, RpcCall *call, const char *path, unsigned mode, bool make_parents,
                  ReceiveFn fn, Error *reterr);
