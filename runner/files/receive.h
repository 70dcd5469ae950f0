/* SPDX-License-Identifier: Apache-2.0 */
/* Files that come by an fd with a request, of any size.
 *
 * Theory of operation. Each is copied by a thread of its own, which waits for what it comes from
 * and for the disk, so that the keeper's loop waits for neither; and when all has come, and its
 * client is still there, it is put at its place by another, since that waits for the disk as well.
 * A thread touches its upload and nothing else. The call is answered when the file is at its place.
 * When its connection ends first, nothing is left of it. A keeper that ends stops it where it is.
 *
 * They are not among the threads of work.h, where one that waits for its client would keep others
 * from theirs. */
#pragma once

#include "files/files.h"
#include "rpc/server.h"

enum { RECEIVES_MAX = 32 }; /* at the same time, of all clients: each has a thread */

typedef struct Receives Receives;

/* loop and files are borrowed until receives_free(). 0 or a negative errno. */
int receives_new(Loop *loop, Files *files, Receives **ret, Error *reterr);
/* Whether there are some. */
bool receives_busy(const Receives *all);
/* When their calls have ended. NULL is legal; returns NULL. */
Receives *receives_free(Receives *all);

/* Writes what the answer has besides size. */
typedef void (*ReceiveFn)(const RpcCall *call, JsonWriter *w);

/* Takes the fd of the call's and answers the call by itself; fn may be NULL. Otherwise as
 * files_upload_new(), -EBUSY with an ERROR_LIMIT at RECEIVES_MAX, and -EINVAL where no fd came. */
int receive_start(Receives *all, RpcCall *call, const char *path, unsigned mode, bool make_parents,
                  ReceiveFn fn, Error *reterr);
