/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "policy/plan.h"

/* For each absolute path to hide, also hides the host's file of that path (hidden.c). Returns 0 or
 * a negative errno. */
int hidden_prepare(LaunchPlan *plan, Error *reterr);
