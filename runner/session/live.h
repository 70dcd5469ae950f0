/* SPDX-License-Identifier: Apache-2.0 */
/* The lock and the socket of a session: whether it is live, and how its keeper is reached. */
#pragma once

#include "base/wait.h"
#include "session/directory.h"

#define KEEPER_SOCKET "keeper.sock"
/* This file exists from before the sandbox starts until the last check of protected paths has
 * ended. It is empty; if a file could not be set aside, it has the reason as text. A killed keeper
 * leaves it. */
#define SESSION_SWEEP_DUE "sweep.due"

/* Locks a session. The lock's holder is the session's only keeper, or removes the session. Returns
 * -EWOULDBLOCK with an ERROR_BUSY if another process holds it. The caller owns the fd, which is the
 * lock. */
int session_lock(int dir_fd, int *ret_fd, Error *reterr);
/* Keeps others from taking that lock. Several processes may do so at a time, each for a moment, and
 * session_lock() waits for them. Returns -EWOULDBLOCK with an ERROR_BUSY if the session is not at
 * rest. The caller owns the fd. */
int session_share(int dir_fd, int *ret_fd, Error *reterr);
/* Sets an ERROR_BUSY, because a process holds the lock, and no keeper answers. Returns -EBUSY. */
int session_refuse_held(const char *name, int dir_fd, Error *reterr);
/* Whether another process holds the lock: a keeper, or one that removes the session. */
bool session_is_live(int dir_fd);
/* Returns "live" or "at rest". session_states lists these words, and ends with NULL. */
const char *session_state(int dir_fd);
extern const char *const session_states[];

/* Connects to the keeper, and proves that this process is in its user namespace (rpc/peer.h).
 * Returns -ENOENT without an error if none listens: the session is at rest, or its keeper is
 * starting or ending. */
int session_connect(int dir_fd, int *ret_fd, Error *reterr);
/* Values for patience, in usec. That of a server is shorter, because its other clients wait
 * meanwhile. */
enum { FIND_TIME = HOLT_WAIT(10000000), FIND_TIME_SERVER = HOLT_WAIT(2000000) };
/* Does the same, and waits at most patience usec while a process holds the lock without listening.
 * That process is a keeper that starts, or one that ends and still checks protected paths. Returns
 * -ENOENT without an error if the session is at rest. */
int session_find_keeper(const char *name, int dir_fd, uint64_t patience, int *ret_fd,
                        Error *reterr);
/* Whether the last check of protected paths is incomplete (SESSION_SWEEP_DUE). Stores the reason in
 * text. The answer is valid for the keeper, or while none is live. */
bool session_sweep_due(int dir_fd, char *text, size_t size);

/* Listens on the session's socket, replacing one that an earlier keeper left. The caller must hold
 * the lock. */
int session_listen(int dir_fd, int *ret_fd, Error *reterr);
