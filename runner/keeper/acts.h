/* SPDX-License-Identifier: Apache-2.0 */
/* What a person does by several calls is one row of the history: between history.begin and
 * history.end, or the end of the connection, calls of a connection about files are not noted by
 * themselves. A connection has one act at a time. */
#pragma once

#include "rpc/server.h"
#include "store/unwritten.h"

typedef struct Acts Acts;

/* store and unwritten are borrowed until acts_free(). 0 or -ENOMEM. */
int acts_new(Store *store, Unwritten *unwritten, Acts **ret, Error *reterr);
/* NULL is legal; returns NULL. */
Acts *acts_free(Acts *all);

/* name is no method's, so that nobody's row is mistaken for what it is not. Takes nothing over.
 * -EINVAL with an ERROR_USAGE, -EBUSY with an ERROR_BUSY where one goes on; -ENOMEM, or an error of
 * the store's. */
int act_begin(Acts *all, RpcConnection *connection, const char *name, const char *params,
              Error *reterr);
/* result is JSON, as the history has it. *ret_unrecorded: NULL, or why that is not in the history
 * yet (store/unwritten.h). -ENOENT with an ERROR_MISSING where none goes on. */
int act_end(Acts *all, const RpcConnection *connection, const char *result,
            const char **ret_unrecorded, Error *reterr);
/* Whether its calls are part of one. */
bool act_goes_on(const Acts *all, const RpcConnection *connection);
/* The connection has ended: so has its act. */
void acts_forget(Acts *all, const RpcConnection *connection);
