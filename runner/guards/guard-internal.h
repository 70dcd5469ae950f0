/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of guard_sweep(). guard.c looks at the guards, guard-links.c at submodules, and
 * guard-aside.c renames files. Work is counted in units (git/repository.h). */
#pragma once

#include "git/repository.h"
#include "guards/guard.h"

/* Looks at all guards of one repository after a command. */
typedef struct Sweep {
        const LaunchPlan *plan;
        RepositoryLinks found; /* Repositories that git enters. */
        RepositoryTree tree;   /* The workspace. */
        StrList *moved;
        StrList *restored; /* Paths that have their earlier files again; NULL to restore none. */
        StrList left;      /* Paths that could not be moved. */
        bool locked;       /* At least one of them has mode 0 now, so that nobody can read it. */
        /* At least one of them belongs to an owner that the id map does not contain. */
        bool foreign;
        int result; /* The first negative errno, or 0. */
} Sweep;

/* Notes an error, unless r is 0; the sweep goes on. */
void sweep_note(Sweep *sweep, int r);

/* Makes a directory usable again, if the command has removed the right to enter it. */
void sweep_let_in(int dir_fd);

/* Renames `from` in dir_fd to a new name that begins with `name`, which is usually the same as
 * `from`. dir is the path of dir_fd, for the report: "" or with a slash at its end. */
void sweep_set_aside(Sweep *sweep, int dir_fd, const char *dir, const char *from, const char *name);

/* Sets aside the new file at a guard's path, and puts the earlier one there, in one step. git on
 * the host may read the name at any moment (restore.c). */
void sweep_restore(Sweep *sweep, int dir_fd, const char *dir, const char *name,
                   const PlanGuard *guard);

/* Sets aside the file at a guard's path, or an obstacle on the way to it, unless the guard holds.
 */
void sweep_guard(Sweep *sweep, const PlanGuard *guard);

/* Sweeps the submodules. more: units of work for all repositories together, beyond those that they
 * took before the command. */
void sweep_submodules(Sweep *sweep, size_t *more);
