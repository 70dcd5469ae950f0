/* SPDX-License-Identifier: Apache-2.0 */
/* Symlinks of /usr that lead nowhere in a sandbox, although the host has their targets.
 *
 * Packages keep their settings in /etc and link to them from their own directory in /usr. If the
 * sandbox does not show that entry of /etc, their programs fail, and many do not say why. Nothing
 * tells which links a program has used. So the directories of its package are searched: those named
 * like the program, the one in which it lies, and those that its script names. Only the caller's
 * command and the system's files are read, and nothing that the sandbox has written. */
#pragma once

#include "child/child.h"

enum { LINKS_FOUND_MAX = 4 };

typedef struct DeadLink {
        char *path;   /* Inside: "/usr/share/maven/conf". Owned. */
        char *target; /* The entry that is missing: "/etc/maven". Owned. */
} DeadLink;

typedef struct DeadLinks {
        DeadLink items[LINKS_FOUND_MAX];
        unsigned count;
} DeadLinks;

/* Finds links with different targets.
 *
 * argv       the command, up to NULL
 * inside_fd  the sandbox's root, for a process that may read only there; otherwise FD_NONE */
void dead_links_find(const Launch *launch, const char *const *argv, int inside_fd, DeadLinks *ret);
void dead_links_clear(DeadLinks *links);
