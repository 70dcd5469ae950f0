/* SPDX-License-Identifier: Apache-2.0 */
/* What holt cp says in the end: how much there was, what is left out, and what came out of the
 * session that the caller has to look at. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Zeroed is of nothing yet. */
typedef struct Copied {
        uint64_t left_out; /* that are neither files nor directories */
        struct {
                const char *type;
                char *path; /* owned; NULL where there is none */
        } first[3];         /* of them */
        char *repository;   /* the first .git that came out of the session; owned, or NULL */
} Copied;

void copied_clear(Copied *copied);

/* Of what is left out, whether it is a link. */
void copied_leave_out(Copied *copied, bool link, const char *path);
/* A path of the session's that is here now, by its name there or here. */
void copied_came_out(Copied *copied, const char *path, const char *name);

/* To stderr: what is not as it was asked for. into: it went into the session. */
void copied_tell(const Copied *copied, const char *session, bool into);
/* The same of what came out before something failed. */
void copied_tell_repository(const Copied *copied);
/* To stdout as JSON: all of it, with the counts of progress.h. 0 or -ENOMEM. */
int copied_print(const Copied *copied, Error *reterr);
