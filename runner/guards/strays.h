/* SPDX-License-Identifier: Apache-2.0 */
/* What is neither a file nor a directory in a directory of git's. git makes no such thing there,
 * and writes through it: a link called COMMIT_EDITMSG is a file of the caller's with the next
 * message in it, one in logs/ a file with the name of a branch. And what is a file, but leads git
 * astray by what it says (git-state.h). */
#pragma once

#include "policy/plan.h"

/* Adds what is there now in the .git of the workspace, tree_fd, and at the top of a workspace that
 * is a git directory itself; not what is guarded, nor what has been set aside.
 *
 * known  what was there before the command ran, or NULL before it runs. With it the caller is given
 *        back the right to read what the command has closed, and less is looked at: as much as
 *        before, and so much more
 *
 * 0, -E2BIG where there is too much to look at, or -ENOMEM. */
int strays_find(const LaunchPlan *plan, int tree_fd, const PlanStrays *known, PlanStrays *ret);

/* Whether the one at index of found is among those of known, leading where it did, and nobody has
 * made it anew. */
bool strays_has(const PlanStrays *known, const PlanStrays *found, size_t index);
