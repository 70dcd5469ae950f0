/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the history and the audit that are not in the database yet.
 *
 * Theory of operation. What has a place on the disk beside the database (store_history_put()) is
 * moved when there is time. On a full disk a command still runs: it may be the one that makes room,
 * and nobody could clean up otherwise. But it is not done in silence. What is to be written about
 * it waits in memory and is written, with its own times, before the next row and once a second, as
 * soon as that can be; a command's answer says so meanwhile (the member unrecorded). UNWRITTEN_MAX
 * of a kind wait at most, so that no flood of calls of tools takes the place of commands; how many
 * there were beyond, or are larger than a row may be, is written into the audit with them, as a
 * limit. What waits is lost with a keeper that ends before there is room, killed or not: that is
 * what the answer warns of. */
#pragma once

#include "base/loop.h"
#include "store/store.h"

enum { UNWRITTEN_MAX = 1000 };

typedef struct Unwritten Unwritten;

/* loop and store are borrowed until unwritten_free(). 0 or -ENOMEM. */
int unwritten_new(Loop *loop, Store *store, Unwritten **ret, Error *reterr);
/* After a last try. NULL is legal; returns NULL. */
Unwritten *unwritten_free(Unwritten *all);

/* Writes a row of the history, or with an id the end of one that is there; all of it is borrowed.
 * NULL, or why it waits, or is lost; until the next call of any of these. */
const char *unwritten_record(Unwritten *all, const StoreHistory *row);
/* What names the row that waits since the last call of it, or 0 of one that is lost; and whether it
 * still is not written, as a lost one never is. */
uint64_t unwritten_last(const Unwritten *all);
bool unwritten_waits(const Unwritten *all, uint64_t row);
/* What has just happened, into the audit. */
void unwritten_audit(Unwritten *all, const char *kind, const char *detail);
/* A row of the history with one of the audit, of the time at which that ended: both or neither. */
void unwritten_audited(Unwritten *all, const StoreHistory *row, const char *kind,
                       const char *detail);
