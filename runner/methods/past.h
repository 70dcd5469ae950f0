/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that ended before the keeper started, or were dropped to make room. Their numbers are
 * not used again, and the history has the ends of their commands. */
#pragma once

#include "keeper/keeper.h"

/* Finds a process as process_find() does. The error tells how a process of the past has ended.
 * output: the caller wants its output. */
int past_process(Keeper *keeper, const char *id, bool output, Process **ret, Error *error);

/* Replies to process.wait for a process that process_find() did not find, with the reason in
 * *error. Returns 0, or a negative errno; *error then tells what is known. */
int past_wait(Keeper *keeper, RpcCall *call, const char *id, Error *error);

/* Whether a process with this id has existed. */
bool past_has(const Keeper *keeper, const char *id);

typedef struct PastAsk {
        enum { PAST_WAIT, PAST_LOGS, PAST_KILL, PAST_SIGNAL } what;
        const char *id;
} PastAsk;

/* Answers for a session at rest, by its database and the file of numbers in its directory, path.
 * Writes the members of the reply of the method. data is a PastAsk. Returns 0 or a negative
 * errno. */
int past_stored(Store *store, const char *path, const void *data, JsonWriter *w, Error *reterr);
