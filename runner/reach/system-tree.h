/* SPDX-License-Identifier: Apache-2.0 */
/* The system tree of a sandbox: the host's /usr and a few entries of its /etc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct SystemEntry {
        char *path; /* Path relative to the system tree and to the root inside: "usr", "etc/ssl". */
        char *link; /* Target of a symlink, or NULL. */
        char *text; /* Content of a small file that is copied instead of mounted, or NULL. */
        size_t size;
        bool directory;
} SystemEntry;

typedef struct SystemTree {
        SystemEntry *entries;
        size_t count;
} SystemTree;
