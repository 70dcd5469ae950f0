/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the files that were set aside at protected paths, and how to move them back. */
#pragma once

#include <stdio.h>

#include "base/strings.h"

/* Why a file was set aside. */
typedef enum MovedWhy {
        MOVED_MADE,     /* It appeared at a protected path. */
        MOVED_REPLACED, /* The host has replaced a protected file, so it may be the host's. */
        MOVED_STILL,    /* Like MOVED_REPLACED, but during an earlier command of the session. */
        MOVED_WHY_MAX,
} MovedWhy;

typedef struct MovedFrom {
        MovedWhy why;
        const char *workspace; /* its host path; if NULL, no commands are printed */
        const char *session;   /* its name, or NULL */
} MovedFrom;

/* Prints the paths in moved, which were set aside, and the commands that move them back. If one
 * path has several versions, only one command moves, so that it overwrites none of them. Prints
 * nothing if moved is empty. */
void moved_report(const StrList *moved, const MovedFrom *from, FILE *out);
