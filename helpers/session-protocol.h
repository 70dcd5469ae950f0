/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper of a session and its init say to each other, over a seqpacket socket pair that
 * init is executed with as fd 3: fixed-size messages, one a packet, some with file descriptors.
 *
 * Whoever speaks from inside has no more authority than what runs there, so the keeper checks every
 * message as an attacker's. */
#pragma once

#include <stdint.h>

enum {
        SESSION_CONTROL_FD = 3,
        SESSION_EXECS_MAX = 256,             /* that have a process */
        SESSION_BLOCK_MAX = 4 * 1024 * 1024, /* bytes of an ExecBlock: twice what execve(2) takes */
        SESSION_INLINE_MAX = 4096,           /* ... of one that comes in the message */
};

/* keeper -> init */
enum {
        SESSION_EXEC = 32, /* start exec; value is the size of its ExecBlock, which comes behind the
                              message, or in a memory file, the first fd, where it is larger than
                              SESSION_INLINE_MAX; then those of stdin, stdout and stderr that are
                              not the terminal's */
        SESSION_SIGNAL, /* send signal value to the process group of exec's command, pid detail */
        SESSION_KILL,   /* send signal value to every process of exec; SIGKILL until none is left */
        SESSION_RESUME, /* put exec's command into the foreground of its terminal, if it has one,
                           and let every process of exec go on */
};

/* init -> keeper */
enum {
        SESSION_STARTED = 1, /* value is the pid; with the terminal's master where there is one */
        SESSION_FAILED,      /* it was not started: errno value, INIT_STEP_* detail */
        SESSION_STOPPED,     /* the command was stopped by signal value; only on a terminal */
        SESSION_ENDED,       /* value is the wait status of the command, with its usage; detail is 1
                                where it has left no process */
        SESSION_GONE, /* no process of exec is left; value is not 0 where its monitor was killed */
};

typedef struct SessionMessage {
        uint32_t type;
        uint32_t exec; /* the keeper's number for it, not 0 */
        int32_t value;
        uint32_t detail;
        uint64_t user_us, system_us, max_rss; /* bytes */
} SessionMessage;

/* What to execute: behind this the strings, each with its NUL: the
 * directory to start in, argv, the environment. */
typedef struct ExecBlock {
        uint32_t argc, envc;
        uint32_t terminal;      /* a bit for each of fds 0 to 2 that is one, which init makes */
        uint32_t background;    /* ... whose keys the command gets only when it reads from it */
        uint16_t rows, columns; /* of the terminal; 0 0 for none said */
        uint32_t has_mode;
        uint8_t mode[60]; /* struct termios, as TCSETS takes it */
} ExecBlock;
