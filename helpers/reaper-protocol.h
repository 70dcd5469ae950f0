/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol between the reaper of "holt bwrap" and the process that has started it. The reaper
 * is executed with
 *
 *      argv = { "bwrap", NUMBERS, PROGRAM, COMMAND, ARG... }
 *
 * PROGRAM is looked up, and COMMAND becomes its argv[0]. NUMBERS are decimal numbers with a comma
 * after each: the write end of a pipe for one ReaperMessage; the file with the seccomp programs, or
 * -1; whether the command dies with the reaper; and the descriptors that the reaper keeps open
 * until it ends. The file consists of programs, each after its number of instructions.
 *
 * The reaper has no more authority than the command, so its message is an attacker's. */
#pragma once

#include <stdint.h>

enum {
        REAPER_ENDED = 1, /* value is the wait status of the command */
        REAPER_FAILED,    /* the command did not start: value is the errno */
        REAPER_REFUSED,   /* the kernel refused a seccomp program: value is the errno */
};

typedef struct ReaperMessage {
        uint32_t type;
        int32_t value;
} ReaperMessage;

enum { REAPER_KEEPS_MAX = 80 }; /* descriptors that the reaper keeps */
