/* SPDX-License-Identifier: Apache-2.0 */
/* Denied system calls, as data: seccomp stops the caller, we note the call and answer it with its
 * errno. */
#pragma once

#include <stdint.h>

enum { DENIALS_MAX = 64 }; /* kinds of calls; there are fewer in the table */

typedef struct Denial {
        unsigned nr;    /* native system call number */
        uint64_t count; /* how often it was refused */
} Denial;

typedef struct Denials {
        Denial items[DENIALS_MAX];
        unsigned count;
} Denials;

/* Answers one notification of listener_fd, which poll(2) says is readable. 0, or a negative errno:
 * -ENOENT when the caller has died meanwhile, which is nothing to worry about. Linux 5.0. */
int denials_answer(Denials *denials, int listener_fd);
