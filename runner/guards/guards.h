/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what of a workspace must be guarded before a command runs in it. */
#pragma once

#include "policy/plan.h"

/* Pins each protected path of the workspace, and of the plan's other writable mounts that hold a
 * repository. After the mounts of the plan are open. 0 or a negative errno. */
int guards_prepare(LaunchPlan *plan, Error *reterr);

/* path, as the workspace has it: "" for the workspace itself, NULL for what lies elsewhere. */
const char *guards_within(const PlanMount *workspace, const char *path);

/* Guards one more path, relative to the workspace, unless a guard holds it already. */
int guards_add(LaunchPlan *plan, const PlanMount *workspace, const char *path, Error *reterr);

/* Refuses a file that is protected by its path and has a second one. Returns -EINVAL. */
int guards_refuse_shared(const PlanMount *workspace, const char *path, Error *reterr);

/* The error of a search of repositories that has ended with r, one of repository_is_closed().
 * Returns a negative errno. */
int guards_repository_closed(const PlanMount *workspace, int r, Error *reterr);

/* How much has been looked at for git's configs, of all repositories together. Ends with
 * strlist_clear() of the directories. */
typedef struct GuardsLooks {
        StrList directories; /* of hooks */
        size_t entries;      /* in them */
        size_t files, bytes; /* configs */
} GuardsLooks;

/* Guards what of the workspace the configs of its own repository, of those above and of the caller
 * lead git to, and says whether there is any; bare: the workspace may be one itself.
 * guards_config_of() guards what those of a submodule and of the caller do there; its .git is path
 * (config.c). */
int guards_config(LaunchPlan *plan, const PlanMount *workspace, bool bare, GuardsLooks *looks,
                  bool *ret_found, Error *reterr);
int guards_config_of(LaunchPlan *plan, const PlanMount *workspace, const char *path,
                     GuardsLooks *looks, Error *reterr);
