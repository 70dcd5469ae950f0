/* SPDX-License-Identifier: Apache-2.0 */
/* A policy of holt for "holt bwrap", and the report of its result. */
#pragma once

#include "bwrap/monitor.h"
#include "bwrap/options.h"
#include "cli/report.h"
#include "policy/plan.h"
#include "policy/policy.h"

typedef struct BwrapPolicy {
        const char *name;   /* the value of HOLT_BWRAP_POLICY, or NULL */
        const char *report; /* the value of HOLT_BWRAP_REPORT, or NULL */
        int report_fd;
        Policy policy;
} BwrapPolicy;

/* Reads the variables. Returns whether only holt-full can apply the policy. */
bool bwrap_policy_find(BwrapPolicy *policy);
/* Fills the plan from the policy, if there is one, and the layers of launch. words is the command
 * line. Returns 0, -EPERM (the command could change the policy's file), or another negative errno
 * of policies and plans. */
int bwrap_policy_apply(BwrapPolicy *policy, const BwrapWords *words, LaunchPlan *plan,
                       Launch *launch, Error *reterr);
/* Prints what was refused, and writes the report. error: of the start, or NULL. */
void bwrap_policy_tell(const BwrapPolicy *policy, const BwrapWords *words, const Launch *launch,
                       const BwrapEnd *end, const Error *error);
