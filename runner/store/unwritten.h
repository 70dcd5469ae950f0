/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the history and the audit that are not in the database yet.
 *
 * Theory of operation. A row on the disk beside the database (store_history_put()) is moved into it
 * when there is time.
 *
 * On a full disk, a command still runs: it may be the one that frees space. But the user must know.
 * The command's row waits in memory, and the reply says so (the member unrecorded). The waiting
 * rows are written, with their own times, as soon as possible: before the next row, and once a
 * second.
 *
 * At most UNWRITTEN_MAX rows of a kind wait, so that a flood of tool calls does not displace
 * commands. Further rows, and rows that are too large, are lost. An event "limit" in the audit
 * has their number. If the keeper ends before there is room, the waiting rows are lost. The reply
 * warns of that. */
#pragma once

#include "base/loop.h"
#include "store/store.h"

enum { UNWRITTEN_MAX = 1000 };

typedef struct Unwritten Unwritten;

/* loop and store are borrowed until unwritten_free(). Returns 0 or -ENOMEM. */
int unwritten_new(Loop *loop, Store *store, Unwritten **ret, Error *reterr);
/* Tries to write the rows a last time, and frees all. Returns NULL. all may be NULL. */
Unwritten *unwritten_free(Unwritten *all);

/* Writes a row of the history, or, if it has an id, the end of an existing row. row is borrowed.
 * Returns NULL, or the reason why the row waits or is lost; the text is valid until the next call
 * of these functions. */
const char *unwritten_record(Unwritten *all, const StoreHistory *row);
/* If unwritten_record() has returned a reason, unwritten_last() returns the number of its row, or 0
 * if the row is lost. unwritten_waits() returns whether that row is still not written; it is always
 * true for 0. */
uint64_t unwritten_last(const Unwritten *all);
bool unwritten_waits(const Unwritten *all, uint64_t row);
/* Writes an event of this moment to the audit. */
void unwritten_audit(Unwritten *all, const char *kind, const char *detail);
/* Writes a row of the history and a row of the audit with the time of its end. Writes both or
 * neither. */
void unwritten_audited(Unwritten *all, const StoreHistory *row, const char *kind,
                       const char *detail);
