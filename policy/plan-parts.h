/* SPDX-License-Identifier: Apache-2.0 */
/* plan_make() in parts; see plan.c. */
#pragma once

#include "policy/plan.h"

/* The tree (plan-mounts.c): rootfs, mounts in order, guards. As plan_make(). */
int plan_tree(LaunchPlan *plan, const Policy *policy, const PlanContext *context, Error *reterr);
