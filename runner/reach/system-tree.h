/* SPDX-License-Identifier: Apache-2.0 */
/* The system tree of a sandbox, as the host has it: /usr and a few entries of /etc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct SystemEntry {
        char *path; /* relative to the system tree and to the root inside: "usr", "etc/ssl" */
        char *link; /* the target of a symlink, or NULL */
        char *text; /* the content of a small file, which is copied instead of mounted; or NULL */
        size_t size;
        bool directory;
} SystemEntry;

typedef struct SystemTree {
        SystemEntry *entries;
        size_t count;
} SystemTree;
