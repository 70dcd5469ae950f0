/* SPDX-License-Identifier: Apache-2.0 */
/* Where a git config leads git: to hooks that it runs, to more config and to a work tree
 * (git-config(1)).
 *
 * The syntax is read as git reads it. What git would refuse is refused: nobody can say what it
 * means to the git that finds a way to read it. */
#pragma once

#include <stddef.h>

#include "base/strings.h"

enum {
        GIT_CONFIG_SIZE_MAX = 1 << 20, /* bytes */
        GIT_CONFIG_PATHS_MAX = 100,    /* of one file */
};

typedef struct GitConfig {
        StrList hooks;     /* every value of core.hooksPath: which one holds others decide */
        StrList includes;  /* of include.path, and of includeIf.*.path, on whatever condition */
        StrList worktrees; /* of core.worktree */
} GitConfig;

/* Adds what bytes say; values are as git takes them apart, and not resolved.
 *
 * 0; -EBADMSG for what is no config; -E2BIG past these bounds; -ENOMEM. The caller ends with
 * git_config_clear() in each case. */
int git_config_read(const char *bytes, size_t size, GitConfig *ret);

void git_config_clear(GitConfig *config);
