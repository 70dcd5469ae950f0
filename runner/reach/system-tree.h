/* SPDX-License-Identifier: Apache-2.0 */
/* The system tree of a sandbox: the host's /usr and some entries of its /etc and /var. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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
