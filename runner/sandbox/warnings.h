/* SPDX-License-Identifier: Apache-2.0 */
/* Options and parameters that have no effect: likely mistakes, but no reason to fail. A policy file
 * serves many places, so its names need not exist in all of them.
 *
 * A list in one hidden path, ".env,*.pem", is an error: the caller believes that these files are
 * hidden. */
#pragma once

#include "base/strings.h"
#include "policy/plan.h"

/* Refuses such a list, without any warning. The parameters are those of warnings_find(). */
int warnings_refuse_lists(const Policy *policy, const LaunchPlan *plan, Error *reterr);

/* Adds a line for each to ret.
 *
 * plan      its mounts are open: launch_prepare(), prepare_try_mounts().
 * landlock  whether Landlock will be in force.
 *
 * Returns 0, -EINVAL for such a list, or -ENOMEM. */
int warnings_find(const Policy *policy, const LaunchPlan *plan, bool landlock, StrList *ret,
                  Error *reterr);
/* Adds a line about the first repository right below the workspace, unless the workspace itself is
 * one. Hooks and configs are protected only at the top of a mount. Returns 0 or -ENOMEM. */
int warnings_find_below(const LaunchPlan *plan, StrList *ret, Error *reterr);
