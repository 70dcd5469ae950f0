/* SPDX-License-Identifier: Apache-2.0 */
/* Strays: unexpected entries in git's directories.
 *
 * One kind is neither a file nor a directory. git never makes such an entry there, but writes
 * through it. If COMMIT_EDITMSG is a symlink, git writes the next message into its target, a file
 * of the caller's. If a directory in logs/ is a symlink, git writes a file with the name of a
 * branch there. The other kind is a file whose content leads git astray (git/state.h). */
#pragma once

#include "policy/plan.h"

/* Adds the strays that exist now in the .git of the workspace, tree_fd. If the workspace is a git
 * directory itself, its top is searched too. Guarded entries and those already set aside are left
 * out.
 *
 * known  strays from before the run, or NULL before it. If set, directories that the command has
 *        closed are made readable again. The search is then bounded: it may do only
 *        slightly more work than the one before the run.
 *
 * Returns 0, -E2BIG if there is too much to look at, or -ENOMEM. */
int strays_find(const LaunchPlan *plan, int tree_fd, const PlanStrays *known, PlanStrays *ret);

/* Whether found[index] is also in known, leads to the same target, and was not made again
 * meanwhile. */
bool strays_has(const PlanStrays *known, const PlanStrays *found, size_t index);
