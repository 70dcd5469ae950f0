/* SPDX-License-Identifier: Apache-2.0 */
/* Paths to which a git config leads git: hooks that it runs, included configs and a work tree
 * (git-config(1)).
 *
 * The parser follows git's own syntax. It refuses every file that git would refuse, because another
 * version of git might read such a file differently. */
#pragma once

#include <stddef.h>

#include "base/strings.h"

enum {
        GIT_CONFIG_SIZE_MAX = 1 << 20, /* Bytes. */
        GIT_CONFIG_PATHS_MAX = 100,    /* Paths in one file. */
};

typedef struct GitConfig {
        StrList hooks; /* Every value of core.hooksPath; other configs decide which one applies. */
        StrList includes; /* Values of include.path, and of includeIf.*.path under any condition. */
        StrList always;   /* Values of include.path alone. */
        StrList worktrees;            /* Values of core.worktree. */
        StrList filters;              /* NAME of each filter.NAME with a program, once. */
        char *user_name, *user_email; /* The last user.name and user.email, or NULL. Owned. */
} GitConfig;

/* Parses a config and adds its paths to *ret. Values are parsed as git does, and not resolved.
 *
 * Returns 0, -EBADMSG if the bytes are not a config, -E2BIG past the bounds above, or -ENOMEM. The
 * caller calls git_config_clear() in each case. */
int git_config_read(const char *bytes, size_t size, GitConfig *ret);

void git_config_clear(GitConfig *config);
