/* SPDX-License-Identifier: Apache-2.0 */
/* Directories that are made, or taken away, under a name of their own, and that a kill -9 leaves.
 *
 * Theory of operation. Who makes one holds a lock on it (flock(2)) as long as it is in the making,
 * or in the taking away, and so the kernel knows whether it still lives. Whoever comes by later
 * takes the lock of each that has such a name, and where it gets it nobody is there: it goes. Where
 * a file system has no locks, nothing is taken away. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Makes path/PREFIX and 16 random digits, mode, and locks it; ret_path has room for PATH_MAX. The
 * caller owns *ret_fd, the lock, until the directory has its right name or is gone. 0 or a negative
 * errno of mkdir(2). */
int leftover_make(const char *path, const char *prefix, unsigned mode, char *ret_path, int *ret_fd);

/* Locks a directory that is to be renamed to such a name; the fd, or a negative errno. */
int leftover_lock(const char *path);

/* Whether that is the name of the directory fd. */
bool leftover_is(int fd, const char *path);

/* Takes away those in the directory path that nobody holds, as far as that can be done. */
void leftovers_sweep(const char *path, const char *prefix);
