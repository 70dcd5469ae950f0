/* SPDX-License-Identifier: Apache-2.0 */
/* Denied system calls as data: seccomp stops the caller, holt counts the call and answers it with
 * its errno. */
#pragma once

#include <stdint.h>

#include "outcome/exit-tracer.h"

enum { DENIALS_MAX = 64 }; /* Kinds of calls; the table has fewer. */

typedef struct Denial {
        unsigned nr;    /* Native system call number. */
        uint64_t count; /* Number of refusals. */
} Denial;

typedef struct Denials {
        Denial items[DENIALS_MAX];
        unsigned count;
} Denials;

/* Answers one notification of listener_fd, after poll(2) has reported that it is readable. Needs
 * Linux 5.0.
 *
 * tracer  the process that may trace exits, or NULL if the policy lets none do that
 *
 * Returns 0 or a negative errno. -ENOENT is harmless: the caller has died meanwhile. */
int denials_answer(Denials *denials, int listener_fd, ExitTracer *tracer);
