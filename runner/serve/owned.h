/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions that clients of `holt serve` own: each is stopped and removed when the connection
 * that has made it ends (session/owner.h has what is done where holt serve itself is killed).
 *
 * That takes the time that their commands take, and so is done by a process for each. */
#pragma once

#include "rpc/server.h"
#include "session/owner.h"

typedef struct Owned Owned;
typedef struct OwnedSession OwnedSession;

enum { OWNED_MAX = 256 }; /* of one holt serve: each has two fds */

/* 0 or a negative errno. */
int owned_new(Loop *loop, Owned **ret, Error *reterr);
/* Waits until all that were let go are gone. The connections have ended. NULL is legal; returns
 * NULL. */
Owned *owned_free(Owned *owned);

/* A place for a session that is about to be made; it goes by owned_discard() or owned_add(). -EBUSY
 * with an ERROR_LIMIT at OWNED_MAX, or another negative errno. */
int owned_prepare(Owned *owned, const char *name, OwnedSession **ret, Error *reterr);
/* Where the owner is to be written. */
Owner *owned_owner(OwnedSession *session);
void owned_discard(OwnedSession *session);
void owned_add(OwnedSession *session, RpcConnection *connection);

/* The connection has ended. */
void owned_let_go(Owned *owned, RpcConnection *connection);
/* Takes away what servers and clients have left that were killed. */
void owned_take_leftovers(Owned *owned);
