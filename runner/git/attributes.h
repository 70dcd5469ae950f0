/* SPDX-License-Identifier: Apache-2.0 */
/* The filters that a file of git's attributes names (gitattributes(5)). */
#pragma once

#include "policy/plan.h"

enum {
        GIT_ATTRIBUTES_SIZE_MAX = 64 << 10, /* Bytes; a larger file is not read. */
        GIT_ATTRIBUTES_FILTERS_MAX = 16,
};

/* Finds the filters that .gitattributes at the top of a work tree and .git/info/attributes name. It
 * leaves out those in the repository's own config. Adds nothing if an included config may have
 * them, or if .git is a file. tree_fd may be O_PATH. The config comes from a guard of plan if one
 * holds it. Returns 0 or -ENOMEM. */
int git_attributes_missing(const LaunchPlan *plan, int tree_fd, StrList *ret);

/* Adds NAME of each filter=NAME, once. Further names are left out. Returns 0 or -ENOMEM. */
int git_attributes_filters(const char *text, StrList *ret);
