/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher while the command runs: passes signals and keys on, keeps the time, notes denials,
 * and says in the end how it ended. */
#pragma once

#include "sandbox/denials.h"
#include "sandbox/launch.h"
#include "sandbox/oom.h"

typedef enum Cause {
        CAUSE_EXITED,
        CAUSE_SIGNALED,
        CAUSE_TIMEOUT,
        CAUSE_OUTPUT_LIMIT,
        CAUSE_KILLED, /* holt was told to stop it, or to stop writing what it had printed */
        CAUSE_OOM,    /* the kernel killed it for lack of memory */
        CAUSE_LOST,   /* init ended without a word */
        CAUSE_ERROR,  /* holt could not start it; see the Error */
        CAUSE_MAX,
} Cause;

typedef struct Usage {
        uint64_t wall_us, user_us, system_us;
        uint64_t max_rss; /* bytes, of the largest process */
} Usage;

typedef struct Outcome {
        Cause cause;
        int exit_code;        /* what holt exits with */
        int signal;           /* that ended the command, or 0 */
        const char *replaced; /* the path inside for which holt stopped it (watch.h), or NULL */
        Usage usage;
        OomKills oom_kills;
        Denials denials;
        uint64_t output, output_dropped; /* bytes, where limits.output is set */
} Outcome;

/* "exited", "signaled", ... */
const char *cause_name(Cause cause);

/* Runs the sandbox to its end: when this returns, all that it has started is gone. Called with
 * every signal blocked (launch_start).
 *
 * 0, or a negative errno when the command could not be executed (reterr: exit code 126 or 127).
 * *ret is filled in both cases. */
int supervise(const Launch *launch, Sandbox *sandbox, Outcome *ret, Error *reterr);
