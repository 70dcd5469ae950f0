/* SPDX-License-Identifier: Apache-2.0 */
/* What init and the launcher say to each other, over a seqpacket socket pair: fixed-size messages,
 * one a packet. init is executed with the socket as fd 3 and
 *
 *      argv = { "holt-init", FLAGS, COMMAND, ARG... }
 *
 * where FLAGS is a string of INIT_FLAG_* letters, "-" for none. The environment is the command's
 * own.
 *
 * init has no more authority than what it runs, so the launcher checks every message as an
 * attacker's. */
#pragma once

#include <stdint.h>

enum {
        INIT_CONTROL_FD = 3,
};

#define INIT_FLAG_TERMINAL 't'   /* the session has a controlling terminal */
#define INIT_FLAG_BACKGROUND 'b' /* ... which the command gets only when it reads from it */

/* init -> launcher */
enum {
        INIT_FAILED = 1, /* the command was not started: errno value; detail is the step */
        INIT_STOPPED, /* the command was stopped by signal value; only where there is a terminal */
        INIT_ENDED,   /* value is the wait status of the command */
};

enum {
        INIT_STEP_FORK,
        INIT_STEP_LOOKUP,      /* no such program in PATH, or at the path given */
        INIT_STEP_EXEC,        /* it is there and can't be executed */
        INIT_STEP_INTERPRETER, /* it is there and its interpreter is not */
        INIT_STEP_CWD,         /* the directory to start in can't be entered; sessions only */
};

/* launcher -> init */
enum {
        INIT_SIGNAL = 16, /* send signal value to the command's process group */
        INIT_SIGNAL_ALL,  /* send signal value to every process but init */
        INIT_CONTINUE,    /* put the command into the foreground and let everything go on */
};

typedef struct InitMessage {
        uint32_t type;
        int32_t value;
        uint32_t detail;
        uint32_t reserved;
} InitMessage;
