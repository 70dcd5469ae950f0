/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a plan the routes of its policy, with a token of its own. */
#pragma once

#include "policy/plan.h"

/* Adds the routes of the policy (policy/plan-routes.h), with a new token. needs_env: a variable of
 * holt's environment that a route reads must be set; otherwise, requests that need it fail later.
 * The files and programs of the routes become inputs of the plan, so that the command cannot change
 * them.
 * Returns 0 or a negative errno. */
int routes_prepare(const Policy *policy, LaunchPlan *plan, bool needs_env, Error *reterr);
