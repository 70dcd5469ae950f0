/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a session.
 *
 * Theory of operation. session_spec_fill() makes a SessionSpec from a caller's request: first the
 * policy, then the settings that override it. session_make() writes the session's directory under
 * another name, checks that this host can launch the policy, and publishes the session. The session
 * is at rest; its first use starts it. */
#pragma once

#include "base/strings.h"
#include "session/owner.h"
#include "session/settings.h"

/* The settings and policy that a caller wants. It starts zeroed and ends with session_spec_clear().
 */
typedef struct SessionSpec {
        /* The policy with the caller's notes, cwd, inputs, and the members set below. */
        Settings settings;
        StrList env;               /* "NAME=VALUE" given by value; filled by session_make(). */
        bool preset;               /* The caller has named a preset or a policy file. */
        bool memory;               /* The caller has set limits.memory, so the tier must not. */
        bool idle, degraded, tier; /* The caller has set the member of this name. */
} SessionSpec;

void session_spec_clear(SessionSpec *spec);

/* The form of SessionRequest.idle. session_spec_fill() refuses times below a second, too. */
#define SESSION_IDLE_PATTERN "^(none|" DURATION_PATTERN ")$"
#define SESSION_IDLE_CURE "Write a number with a unit, such as 10m, of at least 1s; or none."
bool session_idle_fits(const char *text);

/* The words of a caller, from a command line or a message. All are borrowed. Members that the
 * caller leaves out are NULL. */
typedef struct SessionRequest {
        const char *cwd;         /* Absolute; by default, the working directory of this process. */
        const char *tier, *idle; /* A tier's name, and a time such as "10m" or "none". */
        const StrList *degraded; /* Names of layers that may be missing. */
        /* Fills settings.policy, preset, memory, and the inputs of named policy files. cwd is
         * already set. */
        int (*take_policy)(const void *words, SessionSpec *spec, Error *reterr);
        const void *words;
} SessionRequest;

/* Fills spec. If the policy's workspace is a directory of the host, the policy file in it narrows
 * the policy. Returns 0; -EINVAL with an ERROR_USAGE; or a negative errno of take_policy() or
 * policy_files_project(). */
int session_spec_fill(SessionSpec *spec, const SessionRequest *request, Error *reterr);

/* Options of session_make(); each member may be NULL. */
typedef struct SessionMake {
        /* Receives the owner; clearing it removes the session (session/owner.h). */
        Owner *ret_owner;
        /* If given, an existing session that matches the request is accepted, and *ret_made is
         * false. */
        bool *ret_made;
        StrList *warnings; /* Gets a line for each setting that has no effect. */
} SessionMake;

/* Creates a session, and changes spec. Returns 0; -EEXIST with an ERROR_EXISTS if the session
 * exists or, with ret_made, differs; -ENOSPC with an ERROR_LIMIT; or another negative errno. */
int session_make(const char *name, SessionSpec *spec, const SessionMake *how, Error *reterr);
