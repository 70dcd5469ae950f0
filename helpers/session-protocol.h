/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol between a session's keeper and its init. It uses a seqpacket socket pair, fd 3 of
 * init. Each packet is one message of a fixed size, and some carry file descriptors.
 *
 * A sender inside has no more authority than the commands there. So the keeper treats every message
 * like an attacker's. */
#pragma once

#include <stdint.h>

enum {
        SESSION_CONTROL_FD = 3,
        SESSION_EXECS_MAX = 256, /* with at least one process */
        SESSION_BLOCK_MAX = 4 * 1024 *
                            1024,  /* bytes of an ExecBlock: twice the limit of execve(2) */
        SESSION_INLINE_MAX = 4096, /* bytes of a block inside the message */
};

/* keeper -> init */
enum {
        SESSION_EXEC = 32, /* start exec; value is the size of its ExecBlock. A block up to
                              SESSION_INLINE_MAX follows the message; a larger one is in a memory
                              file, the first fd. The next fds are those of stdin, stdout and stderr
                              that are not the terminal */
        SESSION_SIGNAL, /* send signal value to the process group of exec's command, pid detail */
        SESSION_KILL,   /* send signal value to every process of exec; SIGKILL until none is left */
        SESSION_RESUME, /* continue every process of exec, and put its command into the foreground
                           of its terminal, if it has one */
};

/* init -> keeper */
enum {
        SESSION_STARTED = 1, /* value is the pid; carries the terminal's master, if there is one */
        SESSION_FAILED,      /* the command did not start: errno in value, INIT_STEP_* in detail */
        SESSION_STOPPED,     /* signal value stopped the command; only on a terminal */
        SESSION_ENDED, /* value is the wait status of the command, with its usage; detail is 1 if it
                          has left no process */
        SESSION_GONE,  /* no process of exec is left; value is not 0 if its monitor was killed */
};

typedef struct SessionMessage {
        uint32_t type;
        uint32_t exec; /* the keeper's number of the exec, not 0 */
        int32_t value;
        uint32_t detail;
        uint64_t user_us, system_us, max_rss; /* bytes */
} SessionMessage;

/* The command to execute. The strings follow, each with its NUL: the start directory, argv, the
 * environment. */
typedef struct ExecBlock {
        uint32_t argc, envc;
        uint32_t terminal; /* a bit for each of fds 0 to 2 that is the terminal, which init creates
                            */
        uint32_t background; /* the command gets the terminal's keys only when it reads from it */
        uint16_t rows, columns; /* the terminal's size; 0 0 if unknown */
        uint32_t has_mode;
        uint8_t mode[60]; /* struct termios, for TCSETS */
} ExecBlock;
