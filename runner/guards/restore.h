/* SPDX-License-Identifier: Apache-2.0 */
/* Puts back the earlier file of a protected path, after guard_sweep() has set its successor aside.
 *
 * If the host replaces a protected file while the sandbox runs, holt cannot tell whether a command
 * has changed the new file. Without any file, git on the host would forget its remotes, and its
 * next change would make a nearly empty config. So holt keeps the content of small protected files,
 * as they were when the sandbox started.
 *
 * The earlier file itself cannot be trusted. While the host renames a file over it, the kernel
 * removes the mount before the name. For that moment, a command can open the file for writing. */
#pragma once

#include <sys/stat.h>

#include "policy/plan.h"

/* Keeps the content of guard's file, which is open and has these attributes, if it is small. For
 * one of the plan's inputs, these are the bytes that holt obeys. */
void guard_remember(const LaunchPlan *plan, PlanGuard *guard, const struct stat *st);

/* Returns the guard whose pinned file had the place of `moved`, a name that guard_sweep() has
 * given. Only the host can replace a pinned file. NULL if there is none. */
const PlanGuard *guard_replaced(const LaunchPlan *plan, const char *moved);

/* Whether the name `moved` does not exist any more, because the user has moved or removed the
 * file. */
bool guard_is_gone(const LaunchPlan *plan, int workspace_fd, const char *moved);
