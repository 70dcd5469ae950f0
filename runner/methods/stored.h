/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that only read what a session has stored. The keeper answers them for a live session,
 * and `holt serve` for one at rest, so that reading starts nothing. */
#pragma once

#include "rpc/server.h"
#include "store/store.h"

/* Replies from the database. The method must be one of those that only read it. Returns 0. */
int stored_reply(RpcCall *call, Store *store, Error *error);

/* Whether `holt serve` can answer the method for a session at rest. */
bool stored_has(const char *method);
/* Whether a reader (keeper/connect.h) can answer the method. */
bool stored_reads_files(const RpcMethod *method);
/* The function of session.show in a reader. */
int stored_show_plan(RpcCall *call, void *data, Error *error);
/* Answers the method from the database. dir_fd is the directory of the session `name`, and
 * stored_has() must be true. Returns 0 or a negative errno. */
int stored_reply_at_rest(RpcCall *call, const char *name, int dir_fd, Error *error);
