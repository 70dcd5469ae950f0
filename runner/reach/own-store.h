/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "policy/plan.h"
#include "reach/system-tree.h"

/* Hides holt's session store, the caller's settings and the sockets of servers from the command.
 * Refuses a plan in which the command could reach them by another path. from_root: root has started
 * holt, so the stores of the users whose directories it mounts are hidden too. Call it when the
 * mounts of the plan are open. Returns 0, -EPERM with an ERROR_POLICY, or another negative errno.
 */
int own_store_hide(LaunchPlan *plan, const SystemTree *system, bool from_root, Error *reterr);
