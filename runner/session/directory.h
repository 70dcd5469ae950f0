/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions on disk: $XDG_DATA_HOME/holt/sessions/NAME/ with session.db, root/, workspace/, files/,
 * lock and, while the session is live, keeper.sock. All of it belongs to the caller, with mode
 * 0700.
 *
 * All access goes through an fd of the session's directory. A socket is named through
 * /proc/self/fd, so that no path is too long for it (unix(7)). */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"
#include "files/unfinished.h"

enum {
        SESSION_NAME_MAX = 64,
        SESSIONS_MAX = 4096 /* Sessions of one user. */
};

#define SESSION_DATABASE "session.db"
#define KEEPER_SOCKET "keeper.sock"
/* This file exists from before the sandbox starts until the last check of protected paths has
 * ended. It is empty; if a file could not be set aside, it has the reason as text. A killed keeper
 * leaves it. */
#define SESSION_SWEEP_DUE "sweep.due"

/* Returns 0 or -EINVAL. A name has letters, digits, ".", "_" and "-", and starts with a letter or
 * digit. */
int session_name_check(const char *name, Error *reterr);

/* Stores the path of the directory of all sessions in ret, and creates it if it is missing. Verbs
 * that only read do not call this. Returns 0 or a negative errno. */
int session_base(char ret[PATH_MAX], Error *reterr);

/* Cure for an unknown session if no other session has a similar name. */
extern const char session_none_cure[];
/* Opens a session's directory (O_PATH); the caller owns the fd. The directory and the "holt" and
 * "holt/sessions" above it must pass private_check(). ret_path may be NULL. Returns -ENOENT with an
 * ERROR_MISSING that names the most similar session. */
int session_open(const char *name, int *ret_fd, char ret_path[PATH_MAX], Error *reterr);
/* Finds the kernel's own path of a session's directory. Returns 0 or a negative errno. */
int session_path(int dir_fd, char ret[PATH_MAX], Error *reterr);

/* Creates a session. Its directory has another name first, so that nobody sees half a session;
 * session_publish() renames it. Errors are -EEXIST with an ERROR_EXISTS, and -ENOSPC with an
 * ERROR_LIMIT at SESSIONS_MAX. If two callers use the same name, one wins. If the caller is killed
 * before the session is published, the next create, rm or ls removes it (files/unfinished.h). */
typedef struct SessionMaking {
        char path[PATH_MAX];
        int base_fd;
        Unfinished unfinished;
} SessionMaking;

#define SESSION_MAKING_NONE ((SessionMaking){ .base_fd = FD_NONE, .unfinished = UNFINISHED_NONE })

int session_prepare(const char *name, SessionMaking *ret, Error *reterr);
int session_publish(SessionMaking *making, const char *name, Error *reterr);
/* Removes the session unless it is published. Legal at any time. */
void session_discard(SessionMaking *making);

/* Removes the session whose directory is dir_fd, under its lock. Returns -ENOENT with an
 * ERROR_MISSING if another process has removed it, even if a new session has its name by now. */
int session_remove(const char *name, int dir_fd, Error *reterr);

/* Calls fn for each session, sorted by name. A negative errno from fn ends the loop and is
 * returned. */
int session_each(int (*fn)(void *data, const char *name, int dir_fd), void *data, Error *reterr);

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
/* "live" or "at rest"; all such words, NULL-terminated. */
const char *session_state(int dir_fd);
extern const char *const session_states[];

/* Connects to the keeper, and proves that this process is in its user namespace (rpc/peer.h).
 * Returns -ENOENT without an error if none listens: the session is at rest, or its keeper is
 * starting or ending. */
int session_connect(int dir_fd, int *ret_fd, Error *reterr);
/* Does the same, and waits up to 10 s while a process holds the lock without listening. That is a
 * keeper that starts, or one that ends and still checks protected paths. Returns -ENOENT without an
 * error if the session is at rest. */
int session_find_keeper(const char *name, int dir_fd, int *ret_fd, Error *reterr);
/* Whether the last check of protected paths is incomplete (SESSION_SWEEP_DUE). Stores the reason in
 * text. The answer is valid for the keeper, or while none is live. */
bool session_sweep_due(int dir_fd, char *text, size_t size);

/* Listens on the session's socket, replacing one that an earlier keeper left. The caller must hold
 * the lock. */
int session_listen(int dir_fd, int *ret_fd, Error *reterr);
