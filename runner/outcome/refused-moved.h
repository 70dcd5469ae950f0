/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a workspace that is mounted at another path. Scripts of a virtual environment contain
 * the path at which it was made, so they fail there. */
#pragma once

#include <limits.h>

#include "policy/plan.h"

/* Opens the file that the mount shows at path inside. The file may be an attacker's: no symlink on
 * the way is followed. Returns an fd that the caller owns, or a negative errno. */
int refused_open_shown(const PlanMount *mount, const char *path, int flags);

/* Reads the first line of the script that the mount shows at path inside. Returns whether it names
 * an interpreter by an absolute path, which is then in ret. */
bool refused_interpreter(const PlanMount *mount, const char *path, char ret[PATH_MAX]);

/* If the workspace shows the host file path at another path inside, returns a text that says so and
 * how to change it. path is absolute and in normal form. The caller owns the text. Otherwise
 * returns NULL. */
char *refused_moved(const LaunchPlan *plan, const char *path);

/* Looks for a symlink in the part of the path below the mount. Returns the reason why holt suggests
 * no option for it, and in *ret_target the absolute path inside to which the link leads. Both are
 * owned by the caller. NULL if there is no symlink. The link is read in the mount and never
 * followed. change: the command wanted to change the file. */
char *refused_link_out(const PlanMount *mount, const char *path, bool change, char **ret_target);
