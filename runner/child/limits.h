/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the plan that are rlimits of the kernel (setrlimit(2)), and the processors. */
#pragma once

#include "child/child.h"

/* Lowers the plan's limits to the caller's own hard limits, so that the plan and the report tell
 * the real limits. Chooses the processors. Raises holt's own soft limit of file sizes as far as
 * possible. */
void limits_bound(LaunchPlan *plan);

/* Sets the limits in the child, except for that of open files: the child itself has one for each
 * mount. limits_files() sets that one, when they are no longer needed. Each returns 0 or a negative
 * errno with *error set. */
int limits_confine(Launch *launch, Error *error);
int limits_files(Launch *launch, Error *error);
