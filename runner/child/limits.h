/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of the plan that are rlimits of the kernel (setrlimit(2)), and the processors. */
#pragma once

#include "child/child.h"

/* Lowers the plan's limits to what the caller itself is held to by a hard limit, so that the plan,
 * and with it the report, says what will be in force; and chooses processors. holt's own soft limit
 * of file sizes is raised as far as it goes. */
void limits_bound(LaunchPlan *plan);

/* Of the child: sets them. 0 or a negative errno with *error set. */
int limits_confine(Launch *launch, Error *error);
