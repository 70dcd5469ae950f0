/* SPDX-License-Identifier: Apache-2.0 */
/* The summary at the end of holt cp: how much was copied, the entries left out, and a repository
 * that the caller must look at. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A zeroed struct is valid, and has no entries. */
typedef struct Copied {
        uint64_t left_out; /* number of special files, and of links that lead out */
        struct {
                const char *type;
                char *path; /* owned, or NULL */
        } first[3];         /* the first three entries left out */
        /* Owned: path of the first .git that was copied out of the session, or NULL. */
        char *repository;
} Copied;

void copied_clear(Copied *copied);

/* Counts an entry that was left out. link: it is a symlink, and not a special file. */
void copied_leave_out(Copied *copied, bool link, const char *path);
/* Notes a path that was copied out of the session. name is its name in the session or on the
 * host. */
void copied_came_out(Copied *copied, const char *path, const char *name);

/* Reports to stderr the entries left out and a repository. into: the copy went into the session. */
void copied_tell(const Copied *copied, const char *session, bool into);
/* Reports only the repository, after a copy that failed halfway. */
void copied_tell_repository(const Copied *copied);
/* Prints all of it to stdout as JSON, with the counts of progress.h. Returns 0 or -ENOMEM. */
int copied_print(const Copied *copied, Error *reterr);
