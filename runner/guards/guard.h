/* SPDX-License-Identifier: Apache-2.0 */
/* What the policy protects and was not there when the sandbox started.
 *
 * A path that exists is mounted read-only over itself (build.c). One that does not exist can't be
 * mounted over without a stub on the host, and a stub would outlive a kill -9; so it is looked at
 * when the sandbox is gone, and what has come to be there is renamed aside, before the host's git
 * finds it. */
#pragma once

#include <stdbool.h>

#include "policy/plan.h"

/* What is set aside as NAME is called NAME.holt-untrusted, with a number or more behind it where
 * that is taken, and ".lock" where git has refs. */
#define GUARD_SUFFIX ".holt-untrusted"

/* What the name of one that is set aside ends with in dir, relative to the workspace and with a
 * slash at its end, or "" for the workspace itself: ".lock" or "". */
const char *guard_aside_end(const char *dir);

/* Whether a guard is mounted over path, relative to the workspace, or over what it lies in. */
bool guard_holds(const LaunchPlan *plan, const char *path);

/* Gives the caller back what the command has taken of the right to use a directory, an O_PATH fd. 0
 * or a negative errno. */
int guard_make_usable(int dir_fd);

/* The first protected path, of the workspace or another mount, that did not exist when the sandbox
 * started and exists now, or NULL. workspace_fd may be FD_NONE. */
const char *guard_find_made(const LaunchPlan *plan, int workspace_fd);

/* Renames aside what came to be at the plan's guards below workspace_fd (or FD_NONE), where the
 * sandbox could write: at the unpinned ones, and at pinned ones in place of what was pinned. No
 * link is followed. Then the .git of each submodule that was none at the start, by the indexes as
 * they are now, since another run may have added it; the workspace's own index where nobody can say
 * what git would read in it; and what git would write through, or be led astray by (strays.h).
 * An index with more than there is time for goes aside, too: all this ends within a few seconds,
 * whatever the command has made. Names of what is aside now are added to moved. The same in the
 * plan's other mounts that have guards: their names are absolute paths of the host.
 *
 * 0, or a negative errno with the first that could not be renamed; the others are done all the
 * same. */
int guard_sweep(const LaunchPlan *plan, int workspace_fd, StrList *moved, Error *reterr);
