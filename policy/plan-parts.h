/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of plan_make(); see plan.c. */
#pragma once

#include "policy/plan.h"

/* Plans the file tree (plan-mounts.c): rootfs, mounts in order, guards. Returns like plan_make().
 */
int plan_tree(LaunchPlan *plan, const Policy *policy, const PlanContext *context, Error *reterr);

/* Whether the list has NAME=... */
bool plan_has_env(const StrList *env, const char *name);
/* Sets NAME=VALUE and replaces an earlier value (plan.c). NAME is the first `length` bytes of name.
 * Returns 0 or -ENOMEM. */
int plan_set_env(StrList *env, const char *name, size_t length, const char *value);
