/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the table of fields (fields.c) that set the workspace. */
#pragma once

#include "policy/policy.h"

/* Handles --workspace DIR[:TARGET]|none. DIR keeps the mode that was set before, so that it does
 * not widen a policy that says "ro". After "none" there is no mode to keep. */
int workspace_set(Policy *policy, const char *value, Error *reterr);
/* Handles --workspace-mode. Refuses a mode after "none": a caller who adds "ro" for safety does not
 * mean to show a workspace that the policy has removed. */
int workspace_set_mode(Policy *policy, const char *value, Error *reterr);
