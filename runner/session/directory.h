/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions on disk: $XDG_DATA_HOME/holt/sessions/NAME/ with session.db, root/, workspace/, files/,
 * lock and, while the session is live, keeper.sock. All of it is the caller's, mode 0700.
 *
 * Everything is done by the fd of a session's directory. A socket has its name through
 * /proc/self/fd, so that no path is too long for it (unix(7)). */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"
#include "files/unfinished.h"

enum { SESSION_NAME_MAX = 64, SESSIONS_MAX = 4096 /* of one user */ };

#define SESSION_DATABASE "session.db"
#define KEEPER_SOCKET "keeper.sock"
/* There from before the sandbox starts until the last look at protected paths has ended: empty, or,
 * if something could not be set aside, with that text. A keeper that was killed leaves it. */
#define SESSION_SWEEP_DUE "sweep.due"

/* 0, or -EINVAL: a name has letters, digits, ".", "_" and "-", and starts with a letter or digit.
 */
int session_name_check(const char *name, Error *reterr);

/* The directory that sessions are in, made where it is not there: who only looks makes nothing. 0
 * or a negative errno. */
int session_base(char ret[PATH_MAX], Error *reterr);

/* The cure where no session has a name like the one that is asked for. */
extern const char session_none_cure[];
/* Opens a session's directory (O_PATH), which the caller owns. It, "holt" and "holt/sessions" above
 * it have to pass private_check(); ret_path may be NULL. -ENOENT with
 * an ERROR_MISSING that names the nearest. */
int session_open(const char *name, int *ret_fd, char ret_path[PATH_MAX], Error *reterr);

/* Making one: a directory under another name first, so that nobody sees half a session, which
 * session_publish() then gives its own. -EEXIST with an ERROR_EXISTS, or -ENOSPC with an
 * ERROR_LIMIT at SESSIONS_MAX. Of two callers with the same name one wins. If the caller is killed
 * before it has published the session, the next create, rm or ls removes it (files/unfinished.h).
 */
typedef struct SessionMaking {
        char path[PATH_MAX];
        int base_fd;
        Unfinished unfinished;
} SessionMaking;

#define SESSION_MAKING_NONE ((SessionMaking){ .base_fd = FD_NONE, .unfinished = UNFINISHED_NONE })

int session_prepare(const char *name, SessionMaking *ret, Error *reterr);
int session_publish(SessionMaking *making, const char *name, Error *reterr);
/* Removes what is not published. Legal in any case. */
void session_discard(SessionMaking *making);

/* Takes the one whose directory dir_fd is away, with all that is in it, by its lock. -ENOENT with
 * an ERROR_MISSING where somebody else has, though another may have its name by now. */
int session_remove(const char *name, int dir_fd, Error *reterr);

/* Calls fn for each session, in the order of names; a negative errno of it ends that. */
int session_each(int (*fn)(void *data, const char *name, int dir_fd), void *data, Error *reterr);

/* Whoever holds the lock is the one keeper of the session, or takes it away. -EWOULDBLOCK with an
 * ERROR_BUSY where somebody does. The fd, which is owned, is the lock. */
int session_lock(int dir_fd, int *ret_fd, Error *reterr);
/* ERROR_BUSY: who has the lock is no keeper that can be asked. Returns -EBUSY. */
int session_refuse_held(const char *name, int dir_fd, Error *reterr);
/* Whether a keeper, or somebody who removes it, has the lock now. */
bool session_is_live(int dir_fd);
/* "live" or "at rest"; all such words, NULL-terminated. */
const char *session_state(int dir_fd);
extern const char *const session_states[];

/* Connects to the keeper, and proves that this process is of its user namespace (rpc/peer.h).
 * -ENOENT without an error if none listens: the session is at rest, or its keeper is starting or
 * ending. */
int session_connect(int dir_fd, int *ret_fd, Error *reterr);
/* The same, and waits for up to 10 s while somebody holds the lock and does not listen: a keeper
 * that is starting, or one that is ending and still has protected paths to look at. -ENOENT without
 * an error if the session is at rest. */
int session_find_keeper(const char *name, int dir_fd, int *ret_fd, Error *reterr);
/* Whether the last look at protected paths has not ended well (SESSION_SWEEP_DUE): why, in text. Of
 * use only to the keeper, and where none lives. */
bool session_sweep_due(int dir_fd, char *text, size_t size);

/* The lock has to be held. What an earlier keeper has left is replaced. */
int session_listen(int dir_fd, int *ret_fd, Error *reterr);
