/* SPDX-License-Identifier: Apache-2.0 */
/* Ending a session from outside: what its clients do, not its keeper. */
#pragma once

#include "rpc/client.h"

/* Has the keeper of session name, whose directory is dir_fd, stop, and waits until the session is
 * at rest: at once if nobody keeps it. ret, RPC_MESSAGE_NONE before, gets the answer if one came;
 * the caller clears it. 0 or a negative errno. */
int keeper_ask_to_stop(const char *name, int dir_fd, RpcMessage *ret, Error *reterr);

/* Checks that holt has looked at all that the session's commands made at protected paths. If not, a
 * negative errno with an error that says so. If another keeper lives already, it tells its own
 * clients, and this returns 0. */
int keeper_check_swept(const char *name, int dir_fd, Error *reterr);
