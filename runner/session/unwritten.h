/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the history that the disk has no room for.
 *
 * Theory of operation. On a full disk a command still runs: it may be the one that makes room, and
 * nobody could clean up otherwise. But it is not done in silence. Its row waits in memory and is
 * written, with its own times, before the next one and once a second, as soon as that can be; its
 * answer says so meanwhile (the member unrecorded). UNWRITTEN_MAX wait at most; how many there were
 * beyond is written into the audit with them, as a limit. What waits is lost with a keeper that
 * ends before there is room, killed or not: that is what the answer warns of. */
#pragma once

#include "session/keeper.h"

enum { UNWRITTEN_MAX = 1000 };

typedef struct Unwritten Unwritten;

/* 0 or -ENOMEM. */
int unwritten_new(Keeper *keeper, Unwritten **ret, Error *reterr);
/* After a last try. NULL is legal; returns NULL. */
Unwritten *unwritten_free(Unwritten *all);

/* Writes a row, or with an id the end of one that is there; all of it is borrowed. NULL, or why it
 * waits; until the next call. */
const char *unwritten_record(Unwritten *all, const StoreHistory *row);
