/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes that a session can have by one name.
 *
 * What there is of them without cgroups: memory is that of each process (RLIMIT_DATA), and the
 * processors are those that commands start on (sched_setaffinity(2)), which nproc and runtimes go
 * by; a program that asks for others gets them. */
#pragma once

#include "session/settings.h"

enum { TIERS = 4 };
extern const char *const tier_names[TIERS + 1]; /* the last is NULL */

/* tier < TIERS. Memory and processors; memory not where keep_memory is set. 0 or -ENOMEM. */
int tier_apply(unsigned tier, bool keep_memory, Settings *settings, Error *reterr);

/* Of tier, or 0 for all there are: where the session has no tier, or one of another holt's. */
unsigned tier_cpus(const char *tier);

/* 0, or -EINVAL with an ERROR_USAGE for an unknown one. */
int tier_from_name(const char *name, unsigned *ret, Error *reterr);

/* Gives a session at rest another tier, from its next start on; all that it has stays. -EINVAL with
 * an ERROR_USAGE for an unknown tier, -EWOULDBLOCK with an ERROR_BUSY where the session is live, or
 * another negative errno. */
int tier_change(const char *session, const char *tier, Error *reterr);
