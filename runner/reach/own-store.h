/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "policy/plan.h"
#include "reach/system-tree.h"

/* Hides holt's session store, and the sockets of its servers, from the command; or refuses a plan
 * in which the command could reach them by another path. from_root: holt was started by root, so
 * that the stores of the users whose directories it mounts are hidden, too. After the mounts of the
 * plan are open. 0; -EPERM with an ERROR_POLICY; or another negative errno. */
int own_store_hide(LaunchPlan *plan, const SystemTree *system, bool from_root, Error *reterr);
