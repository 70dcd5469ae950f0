/* SPDX-License-Identifier: Apache-2.0 */
/* The system tree of a sandbox: the host's /usr and some entries of its /etc and /var. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "policy/plan.h"

typedef struct SystemEntry {
        char *path; /* Path relative to the system tree and to the root inside: "usr", "etc/ssl". */
        char *link; /* Target of a symlink, or NULL. */
        bool directory; /* A directory of the host. */
        bool masked;    /* A directory in an earlier entry: an empty one of mode 0 covers it. */
} SystemEntry;

typedef struct SystemTree {
        SystemEntry *entries;
        size_t count, room;
} SystemTree;

/* Finds the entries of the system tree that a sandbox shows: the tables of policy/tree.c, and what
 * the policy adds to /etc. plan->rootfs is open. ret is empty; system_tree_clear() frees it. Sets
 * plan->etc_notes. from_root: the command gets a uid that owns no file. Returns 0, or -EINVAL if
 * the policy asks for a private entry, or another negative errno. */
int system_tree_find(LaunchPlan *plan, bool from_root, SystemTree *ret, Error *reterr);
void system_tree_clear(SystemTree *system);
