/* SPDX-License-Identifier: Apache-2.0 */
/* Stopping a session from outside: the client's side. */
#pragma once

#include "rpc/client.h"

/* Asks the keeper of session name, whose directory is dir_fd, to stop, and waits until the session
 * is at rest. Returns at once if no keeper is live. ret is RPC_MESSAGE_NONE before; it receives the
 * reply if one came, and the caller clears it. Returns 0 or a negative errno. */
int keeper_ask_to_stop(const char *name, int dir_fd, RpcMessage *ret, Error *reterr);

/* Verifies that holt has checked all files that the session's commands made at protected paths. If
 * not, returns a negative errno with an error that says so. If another keeper is live already, it
 * tells its own clients, and this returns 0. */
int keeper_check_swept(const char *name, int dir_fd, Error *reterr);
