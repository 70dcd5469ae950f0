/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock: the file tree's rules a second time, by path, and signals and abstract sockets kept
 * inside. */
#pragma once

#include <stddef.h>

#include "child/child.h"

enum { LANDLOCK_ABI_NEEDED = 2 };

/* The kernel's Landlock ABI, or 0 without Landlock; a host's switched-off Landlock is 0, too. */
int landlock_abi(void);

/* A step of the child (step.h). launch->layers.landlock_abi says what the launcher found and wants
 * used; 0 does nothing. */
int landlock_confine(Launch *launch, Error *error);

/* For a process of the host's that serves a sandbox: from now on it opens, makes and removes files
 * only below the directories that fds are, and executes none. no_new_privs has to be set. 0, also
 * where the kernel has no Landlock, or a negative errno. */
int landlock_confine_to(const int *fds, size_t count, Error *error);
