/* SPDX-License-Identifier: Apache-2.0 */
/* What a run, or a session that is made, was asked on the command line that has no effect there:
 * likely a mistake, and no reason to fail. A policy file serves many places, so what it names need
 * not be in all of them. */
#pragma once

#include "base/strings.h"
#include "policy/plan.h"

/* Adds a line for each to ret.
 *
 * plan      its mounts are open: launch_prepare(), prepare_try_mounts().
 * landlock  whether there will be Landlock.
 *
 * 0, or -ENOMEM. */
int warnings_find(const Policy *policy, const LaunchPlan *plan, bool landlock, StrList *ret);
