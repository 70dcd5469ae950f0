/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock enforces the rules of the file tree a second time, by path. It also keeps signals and
 * abstract sockets inside. */
#pragma once

#include <stddef.h>

#include "child/child.h"

enum { LANDLOCK_ABI_NEEDED = 2 };

/* Returns the kernel's Landlock ABI, or 0 if Landlock is missing or switched off. */
int landlock_abi(void);

/* Returns a bit for each of fds 0 to 2 that may give the command more rights to a file of the host.
 * If there is one, Landlock also checks each open(2) (landlock.c). facts are about these fds. */
unsigned landlock_stdio(const Launch *launch, const FdFacts facts[3]);

/* A step of the child (step.h). It uses launch->layers.landlock_abi, as set by the launcher, and
 * does nothing if that is 0. */
int landlock_confine(Launch *launch, Error *error);

/* Confines a process of the host that serves a sandbox. From now on it opens, makes and removes
 * files only below the directories of fds, and executes none. no_new_privs must be set. Returns 0
 * or a negative errno; also 0 if the kernel has no Landlock. */
int landlock_confine_to(const int *fds, size_t count, Error *error);
