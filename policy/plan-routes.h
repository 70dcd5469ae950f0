/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of a policy as part of the launch plan. Only holt-full has this. */
#pragma once

#include "policy/plan.h"

/* Adds the routes of the policy to a plan that plan_make() has made. A policy without routes
 * changes nothing.
 *
 * token  the secret with which the sandbox uses the routes; it becomes {token} in "env".
 *
 * plan->routes gets one JSON text for each route (route_write() in policy/routes/route.h).
 * plan->env gets the variables of "env", and plan->files the files of "files", where {url} is
 * http://127.0.0.1:8474/NAME and {address} is 127.0.0.1:8474. A variable in env.set of the policy
 * wins over that of a route, which wins over one in env.pass. If two routes set the same variable,
 * the later one wins.
 *
 * Returns 0, or one of these:
 *   -EINVAL  a duplicate name, an unknown provider, or the host's network (ERROR_POLICY)
 *   -E2BIG   more than ROUTES_MAX routes, or a variable that execve(2) does not accept
 *   -ENOMEM
 * After an error, plan may contain some of the routes. */
int routes_plan(const Policy *policy, const char *token, LaunchPlan *plan, Error *reterr);
/* The same for these items of bridge.routes, which need not be those of the policy. */
int routes_plan_items(const Policy *policy, const StrList *items, const char *token,
                      LaunchPlan *plan, Error *reterr);
/* Checks the routes of the policy together, by a plan that nobody uses. Returns like routes_plan().
 */
int routes_check(const Policy *policy, Error *reterr);
