/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out where a path in a git config leads. Only config.c needs it. */
#pragma once

#include "policy/plan.h"

/* Stores the kernel's name for path, an absolute path, in *ret, even if the file does not exist.
 * The caller frees it. Refuses a path that the command could redirect. For that, it could change a
 * symlink in the workspace, or move a directory that stands before a "..". Returns 0 or a negative
 * errno. */
int config_find_way(const LaunchPlan *plan, const PlanMount *workspace, const char *path,
                    char **ret, Error *reterr);
