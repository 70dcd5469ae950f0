/* SPDX-License-Identifier: Apache-2.0 */
/* An act is one row of the history for several calls, such as those of one `holt cp`. It lasts from
 * history.begin to history.end, or to the end of the connection. Meanwhile the connection's file
 * calls get no rows of their own. A connection has one act at a time. */
#pragma once

#include "rpc/server.h"
#include "store/unwritten.h"

typedef struct Acts Acts;

/* Borrows store and unwritten until acts_free(). Returns 0 or -ENOMEM. */
int acts_new(Store *store, Unwritten *unwritten, Acts **ret, Error *reterr);
/* NULL is legal; returns NULL. */
Acts *acts_free(Acts *all);

/* Begins an act. All arguments are borrowed. Returns -EBUSY with an ERROR_BUSY if an act is open
 * already, -ENOMEM, or an error of the store. */
int act_begin(Acts *all, RpcConnection *connection, const char *name, const char *params,
              Error *reterr);
/* Ends the connection's act. result is JSON for the history. *ret_unrecorded is NULL, or the reason
 * why the row is not in the history yet (store/unwritten.h). Returns -ENOENT with an ERROR_MISSING
 * if no act is open. */
int act_end(Acts *all, const RpcConnection *connection, const char *result,
            const char **ret_unrecorded, Error *reterr);
/* Whether the connection's calls are part of an act. */
bool act_goes_on(const Acts *all, const RpcConnection *connection);
/* Ends the act of a connection that has closed. */
void acts_forget(Acts *all, const RpcConnection *connection);
