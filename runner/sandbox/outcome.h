/* SPDX-License-Identifier: Apache-2.0 */
/* How a command ended: one rule for a single run and for a command of a session. */
#pragma once

#include "sandbox/denials.h"
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

enum { EXIT_CODE_TIMEOUT = 124 }; /* of a command whose time was over, however it ended then */

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

/* What is known of the end of a command. */
typedef struct Ending {
        bool reported;      /* its parent inside has said how it ended; if not, SIGKILL ended it */
        int status;         /* if reported: its wait status */
        bool timed_out;     /* holt ended it because its time was over */
        bool output_passed; /* it printed more than limits.output */
        bool told_to_stop;  /* the caller wanted its end */
        bool oom;           /* the OOM killer was at work, and no SIGKILL was holt's own */
        int undelivered;    /* the signal that ended the wait for the reader of its output, or 0 */
} Ending;

/* The signal that ended the command, or 0. */
int ending_signal(const Ending *ending);
/* Sets the cause, the signal and the exit code. */
void outcome_conclude(Outcome *outcome, const Ending *ending);

/* "exited", "signaled", ... */
const char *cause_name(Cause cause);
