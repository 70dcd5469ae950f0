/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "policy/plan.h"

enum {
        HIDDEN_GLOBS_MAX = 64,        /* Patterns of one plan. */
        HIDDEN_MATCHES_MAX = 128,     /* Files and directories that the patterns hide. */
        HIDDEN_ENTRIES_MAX = 1000000, /* Entries of the workspace that are looked at. */
        HIDDEN_DEPTH_MAX = 128,       /* Nesting depth of directories. */
};

/* Hides what matches the plan's patterns in the workspace now (hidden-globs.c). The workspace must
 * be open. Returns 0, or a negative errno: past a limit, and if a directory that the command could
 * enter cannot be listed. */
int hidden_globs_prepare(LaunchPlan *plan, Error *reterr);

/* For each absolute path to hide, also hides the host's file of that path (hidden.c). Returns 0 or
 * a negative errno. */
int hidden_prepare(LaunchPlan *plan, Error *reterr);
