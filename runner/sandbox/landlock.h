/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock: the file tree's rules a second time, by path, and signals and abstract sockets kept
 * inside. */
#pragma once

#include "sandbox/launch.h"

enum { LANDLOCK_ABI_NEEDED = 2 };

/* The kernel's Landlock ABI, or 0 without Landlock; a host's switched-off Landlock is 0, too. */
int landlock_abi(void);

/* A step of the child (step.h). launch->layers.landlock_abi says what the launcher found and wants
 * used; 0 does nothing. */
int landlock_confine(Launch *launch, Error *error);
