/* SPDX-License-Identifier: Apache-2.0 */
/* Named sizes of sessions.
 *
 * Without cgroups a tier has two effects. Its memory limits each process (RLIMIT_DATA). Its
 * processors are those on which commands start (sched_setaffinity(2)): nproc and language runtimes
 * respect them, but a program can ask for others. */
#pragma once

#include "session/settings.h"

enum { TIERS = 4 };
extern const char *const tier_names[TIERS + 1]; /* Ends with NULL. */

/* Sets processors, and memory unless keep_memory is true. tier must be less than TIERS. Returns 0
 * or -ENOMEM. */
int tier_apply(unsigned tier, bool keep_memory, Settings *settings, Error *reterr);

/* Returns the processors of a tier. 0 means all of them: the session has no tier, or one that this
 * holt does not know. */
unsigned tier_cpus(const char *tier);

/* Returns 0, or -EINVAL with an ERROR_USAGE for an unknown name. */
int tier_from_name(const char *name, unsigned *ret, Error *reterr);

/* Gives a session at rest another tier from its next start on, and keeps all its data. Returns
 * -EINVAL with an ERROR_USAGE for an unknown tier, -EWOULDBLOCK with an ERROR_BUSY if the session
 * is live, or another negative errno. */
int tier_change(const char *session, const char *tier, Error *reterr);
