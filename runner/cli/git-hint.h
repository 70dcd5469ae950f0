/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdio.h>

#include "outcome/outcome.h"
#include "policy/plan.h"

/* Prints a hint if git inside may have failed because the workspace is a subdirectory of a
 * repository: git exits with 128, and the repository lies above the workspace. */
void git_hint_print(const LaunchPlan *plan, const Outcome *outcome, FILE *out);
