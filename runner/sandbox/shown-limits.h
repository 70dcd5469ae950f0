/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the limits that the sandbox may read in /sys (child/build-limits.c). */
#pragma once

#include "child/child.h"

/* Reads the limits of holt's cgroup and of those above it, and the numbers of the processors. The
 * sandbox is in the same cgroup. If a limit cannot be read, holt assumes that it does not exist.
 * memory is the plan's own limit in bytes, or 0. root is "", except in tests: there it is a
 * directory that contains sys and proc. */
void shown_limits_read(const char *root, uint64_t memory, ShownLimits *ret);
