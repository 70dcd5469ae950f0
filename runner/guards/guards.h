/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the paths of a workspace that must be guarded before a command runs in it. */
#pragma once

#include "policy/plan.h"

/* Pins each protected path of the workspace, and of the plan's other writable mounts that hold a
 * repository. Call it when the mounts of the plan are open. Returns 0 or a negative errno. */
int guards_prepare(LaunchPlan *plan, Error *reterr);

/* Returns path relative to the workspace: "" for the workspace itself, NULL for a path
 * elsewhere. */
const char *guards_within(const PlanMount *workspace, const char *path);

/* Guards one more path, relative to the workspace, unless a guard holds it already. */
int guards_add(LaunchPlan *plan, const PlanMount *workspace, const char *path, Error *reterr);

/* Refuses a protected file that has a second name. Returns -EINVAL. */
int guards_refuse_shared(const PlanMount *workspace, const char *path, Error *reterr);

/* Sets the error for a search of repositories that ended with r, a code of repository_is_closed().
 * Returns a negative errno. */
int guards_repository_closed(const PlanMount *workspace, int r, Error *reterr);

/* Counts the files that the search for git's configs has looked at, for all repositories together.
 * The caller frees directories by strlist_clear(). */
typedef struct GuardsLooks {
        StrList directories; /* Directories of hooks. */
        size_t entries;      /* Entries in these directories. */
        size_t files, bytes; /* Number and size of the configs. */
} GuardsLooks;

/* guards_config() guards the paths in the workspace to which git configs lead: those of its own
 * repository, of repositories above, and of the caller. *ret_found tells whether a repository
 * exists. bare: the workspace itself may be a bare repository.
 *
 * guards_config_of() does the same for a submodule, whose .git is at path, and for the caller's
 * configs (config.c). */
int guards_config(LaunchPlan *plan, const PlanMount *workspace, bool bare, GuardsLooks *looks,
                  bool *ret_found, Error *reterr);
int guards_config_of(LaunchPlan *plan, const PlanMount *workspace, const char *path,
                     GuardsLooks *looks, Error *reterr);
