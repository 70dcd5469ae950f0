/* SPDX-License-Identifier: Apache-2.0 */
/* Files that come by an fd with a request, of any size.
 *
 * Theory of operation. Each is copied from the keeper's loop, a few MiB at a turn, so that whoever
 * else the keeper serves waits for no more than that; from a pipe or socket, whenever there is
 * something in it. The call is answered when the file is at its place. When its connection ends
 * first, nothing is left of it. */
#pragma once

#include "session/keeper.h"

enum { RECEIVES_MAX = 32 }; /* at the same time, of all clients */

/* Writes what the answer has besides size. */
typedef void (*ReceiveFn)(const RpcCall *call, JsonWriter *w);

/* Takes the fd of the call's and answers the call by itself; fn may be NULL. Otherwise as
 * files_upload_new(), -EBUSY with an ERROR_LIMIT at RECEIVES_MAX, and -EINVAL where no fd came. */
int receive_start(Keeper *keeper, RpcCall *call, const char *path, unsigned mode, bool make_parents,
                  ReceiveFn fn, Error *reterr);
