/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol between init and the launcher over a seqpacket socket pair. Each packet is one
 * message of a fixed size. The launcher executes init with the socket as fd 3 and
 *
 *      argv = { "holt-init", FLAGS, COMMAND, ARG... }
 *
 * FLAGS is a string of INIT_FLAG_* letters, or "-" for none. The environment is the command's own.
 *
 * init has no more authority than the command it runs. So the launcher treats every message like an
 * attacker's. */
#pragma once

#include <stdint.h>

enum {
        INIT_CONTROL_FD = 3,
};

#define INIT_FLAG_TERMINAL 't'   /* the session has a controlling terminal */
#define INIT_FLAG_BACKGROUND 'b' /* the command gets the terminal only when it reads from it */

/* init -> launcher */
enum {
        INIT_FAILED = 1, /* the command did not start: errno in value, the step in detail */
        INIT_STOPPED,    /* signal value stopped the command; only with a terminal */
        INIT_ENDED,      /* value is the wait status of the command */
};

enum {
        INIT_STEP_FORK,
        INIT_STEP_LOOKUP,      /* no such program in PATH or at the given path */
        INIT_STEP_EXEC,        /* the program exists, but cannot be executed */
        INIT_STEP_INTERPRETER, /* the program exists, but its interpreter does not */
        INIT_STEP_CWD,         /* the start directory cannot be entered; only in sessions */
};

/* launcher -> init */
enum {
        INIT_SIGNAL = 16, /* send signal value to the command's process group */
        INIT_SIGNAL_ALL,  /* send signal value to every process except init */
        INIT_CONTINUE,    /* put the command into the foreground and continue all processes */
};

typedef struct InitMessage {
        uint32_t type;
        int32_t value;
        uint32_t detail;
        uint32_t reserved;
} InitMessage;
