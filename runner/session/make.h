/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a session.
 *
 * Theory of operation. A caller fills a SessionSpec: first the policy, then the settings that
 * override it. session_make() writes the session's directory under another name, checks that this
 * host can launch the policy, and publishes the session. The session is at rest; its first use
 * starts it. */
#pragma once

#include "session/owner.h"
#include "session/settings.h"

/* A caller's request. It starts zeroed and ends with session_spec_clear(). */
typedef struct SessionSpec {
        /* The policy with the caller's notes, cwd, inputs, and the members set below. */
        Settings settings;
        StrList env;               /* "NAME=VALUE" given by value; filled by session_make(). */
        bool preset;               /* The caller has named a preset or a policy file. */
        bool idle, degraded, tier; /* The caller has set the member of this name. */
} SessionSpec;

void session_spec_clear(SessionSpec *spec);
/* Sets the idle time; text is a time such as "10m", or "none". Returns 0, or -EINVAL with an
 * ERROR_USAGE. */
int session_spec_idle(SessionSpec *spec, const char *text, Error *reterr);
/* Sets the layers that may be missing, by name. Returns 0, or -EINVAL with an ERROR_USAGE. */
int session_spec_degraded(SessionSpec *spec, const StrList *layers, Error *reterr);

/* Lets the project's own file narrow the policy, if the caller names a directory of the host as the
 * workspace. Nothing may be set after it, because the file's limits are the last word. Returns 0 or
 * a negative errno of policy_files_project(). */
int session_spec_project(SessionSpec *spec, Error *reterr);

/* Options of session_make(); each member may be NULL. */
typedef struct SessionMake {
        /* Receives the owner; clearing it removes the session (session/owner.h). */
        Owner *ret_owner;
        /* Accepts an existing session that matches the request, and is then set to false. */
        bool *ret_made;
        StrList *warnings; /* Gets a line for each setting that has no effect. */
} SessionMake;

/* Creates a session, and changes spec. Returns 0; -EEXIST with an ERROR_EXISTS if the session
 * exists or, with ret_made, differs; -ENOSPC with an ERROR_LIMIT; or another negative errno. */
int session_make(const char *name, SessionSpec *spec, const SessionMake *how, Error *reterr);
