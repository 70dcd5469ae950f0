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

/* The form of names, as a pattern and in words. */
#define SESSION_NAME_PATTERN "^[A-Za-z0-9][A-Za-z0-9._-]*$"
#define SESSION_NAME_CURE                                                                          \
        "Use 1 to 64 letters, digits, \".\", \"_\" and \"-\"; the first must be a letter or a "    \
        "digit."
bool session_name_fits(const char *name);
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

/* Creates a session. At first, its directory has another name, so that nobody finds an incomplete
 * session; session_publish() renames it. Errors are -EEXIST with an ERROR_EXISTS, and -ENOSPC with
 * an ERROR_LIMIT at SESSIONS_MAX. If two callers use the same name, one wins. If the caller is
 * killed before the session is published, the next create, rm or ls removes it
 * (files/unfinished.h). */
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
