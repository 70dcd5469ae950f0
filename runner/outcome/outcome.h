/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of a command. The same rules hold for a single run and for a command of a session. */
#pragma once

#include "base/json-write.h"
#include "outcome/denials.h"
#include "outcome/limits-hit.h"
#include "outcome/oom.h"
#include "network/network.h"
#include "outcome/refused.h"

typedef enum Cause {
        CAUSE_EXITED,
        CAUSE_SIGNALED,
        CAUSE_TIMEOUT,
        CAUSE_OUTPUT_LIMIT,
        CAUSE_KILLED, /* holt was told to stop the command, or to stop writing its output. */
        CAUSE_OOM,    /* The kernel killed it because memory ran out. */
        CAUSE_LOST,   /* init ended without a message. */
        CAUSE_ERROR,  /* holt could not start it; see the Error. */
        CAUSE_MAX,
} Cause;

/* The sender of a SIGINT to the command. */
typedef enum Interrupt {
        INTERRUPT_NONE,
        INTERRUPT_SIGNAL, /* A process sent SIGINT to holt. */
        INTERRUPT_KEY,    /* The caller pressed Ctrl-C at the terminal that holt relays. */
} Interrupt;

/* Exit code after a timeout, even if the command then ended by itself. */
enum { EXIT_CODE_TIMEOUT = 124 };

typedef struct Usage {
        uint64_t wall_us, user_us, system_us;
        uint64_t max_rss; /* Bytes, of the largest process. */
} Usage;

/* Why a command may have failed, besides the calls, paths and hosts that were refused. */
typedef struct Symptoms {
        LimitsHit limits_hit;
        bool network_missed; /* Its messages are about a host, see network-words.h. */
} Symptoms;

typedef struct Outcome {
        Cause cause;
        int exit_code; /* The exit code of holt. */
        int signal;    /* The signal that ended the command, or 0. */
        Interrupt interrupt;
        /* The path inside that the host replaced, so that holt stopped the command (watch.h); or
         * NULL. */
        const char *replaced;
        Usage usage;
        OomKills oom_kills;
        Denials denials;
        NetDenials *net_denials; /* Refused names and connections. Owned, or NULL. */
        GatewayDenials
                *gateway_denials; /* Refused and failed requests of routes. Owned, or NULL. */
        bool gateway_lost;        /* holt-gateway ended, and the routes with it. */
        EgressLevel network_level;
        bool network_lost; /* holt-egress ended, and the network with it. */
        Symptoms symptoms;
        Refusals *refusals; /* Refused paths, if the command failed. Owned, or NULL. */
        char *said; /* The end of its messages, if it failed and they are known. Owned, or NULL. */
        size_t said_length;
        uint64_t output, output_dropped; /* Bytes, if limits.output is set. */
} Outcome;

/* Facts about the end of a command. */
typedef struct Ending {
        bool reported;      /* Its parent inside reported the end; otherwise SIGKILL ended it. */
        int status;         /* The wait status, if reported. */
        bool timed_out;     /* holt ended it at its timeout. */
        bool output_passed; /* It printed more than limits.output. */
        bool told_to_stop;  /* The caller asked holt to end it. */
        bool oom;           /* The OOM killer killed in the cgroup, and holt sent no SIGKILL. */
        int undelivered;    /* Signal that ended the wait for a reader of the output, or 0. */
} Ending;

/* Returns the signal that ended the command, or 0. */
int ending_signal(const Ending *ending);
/* Sets the cause, the signal and the exit code of outcome. */
void outcome_conclude(Outcome *outcome, const Ending *ending);

/* Returns "exited", "signaled", ... */
const char *cause_name(Cause cause);

/* Writes "cause" and "exit_code". cause is a name from cause_name(), which may come from the
 * history. */
void outcome_write_end(JsonWriter *w, const char *cause, int exit_code);
