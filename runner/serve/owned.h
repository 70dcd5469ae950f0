/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions that clients of `holt serve` own: each is stopped and removed when the connection
 * that made it ends. session/owner.h describes what happens if holt serve itself is killed.
 *
 * Stopping takes as long as the session's commands take to end, so a separate process removes each
 * session. */
#pragma once

#include "rpc/server.h"
#include "session/owner.h"

typedef struct Owned Owned;
typedef struct OwnedSession OwnedSession;

enum { OWNED_MAX = 256 }; /* for one holt serve, because each session needs two fds */

/* Returns 0 or a negative errno. */
int owned_new(Loop *loop, Owned **ret, Error *reterr);
/* Waits until all sessions that were let go are gone. All connections must have ended. Returns
 * NULL. owned may be NULL. */
Owned *owned_free(Owned *owned);

/* Reserves a place for a session that is about to be made. owned_discard() or owned_add() must
 * follow. Returns -EBUSY with an ERROR_LIMIT at OWNED_MAX, or another negative errno. */
int owned_prepare(Owned *owned, const char *name, OwnedSession **ret, Error *reterr);
/* Returns the Owner that session_make() must fill in. */
Owner *owned_owner(OwnedSession *session);
void owned_discard(OwnedSession *session);
void owned_add(OwnedSession *session, RpcConnection *connection);

/* Removes the sessions of a connection that has ended. */
void owned_let_go(Owned *owned, RpcConnection *connection);
/* Removes the sessions whose servers and clients were killed. */
void owned_take_leftovers(Owned *owned);
