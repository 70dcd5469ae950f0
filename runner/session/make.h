/* SPDX-License-Identifier: Apache-2.0 */
/* Making a session.
 *
 * Theory of operation. A caller fills a SessionSpec: first the policy, then what goes on top of it.
 * session_make() writes the directory of the session under another name, checks that the policy can
 * be launched on this host, and publishes it. The session is at rest; its first use starts it. */
#pragma once

#include "session/owner.h"
#include "session/settings.h"

/* What a caller asks for. Zeroed at first; ends with session_spec_clear(). */
typedef struct SessionSpec {
        Settings settings; /* policy, with the caller's notes; cwd; inputs; and what is set below */
        StrList env;       /* by session_make(): "NAME=VALUE" that the caller gave by value */
        bool preset;       /* the caller has named a preset or a policy file */
        bool idle, degraded, tier; /* the caller has asked for this one */
} SessionSpec;

void session_spec_clear(SessionSpec *spec);
/* text is a time such as "10m", or "none". 0, or -EINVAL with an ERROR_USAGE. */
int session_spec_idle(SessionSpec *spec, const char *text, Error *reterr);
/* layers: names of layers that may be missing. 0, or -EINVAL with an ERROR_USAGE. */
int session_spec_degraded(SessionSpec *spec, const StrList *layers, Error *reterr);

/* How to make it; each member may be NULL. */
typedef struct SessionMake {
        Owner *ret_owner;  /* the session is removed when this is cleared (session/owner.h) */
        bool *ret_made;    /* an existing session will do, if it is as asked for; false then */
        StrList *warnings; /* gets a line for each thing that was asked for and has no effect */
} SessionMake;

/* Changes spec. 0; -EEXIST with an ERROR_EXISTS if there is such a session, or, with ret_made, one
 * that differs; -ENOSPC with an ERROR_LIMIT; or another negative errno. */
int session_make(const char *name, SessionSpec *spec, const SessionMake *how, Error *reterr);
