/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises an index that has not changed since before the command ran, so that it need not be
 * read again after it.
 *
 * A file is the same if its device, inode, size and change time (st_ctim) are. No program can set
 * the change time, and each write updates it, with three exceptions:
 *
 * - The clock of a file system ticks, and a write within the same tick leaves the same time. So the
 *   last change must be older than UNCHANGED_AGE.
 * - A write through a mapping updates the time only if it is the first one to its page. So no
 *   process may have the file open for writing, which a lease finds out, and the file system must
 *   be one that notes the first write. tmpfs does not.
 * - Some ioctls exchange the blocks of two files. That of ext4, EXT4_IOC_MOVE_EXT, makes blocks
 *   zero and leaves the time as it was. So nothing is noted if the command may make system calls
 *   that no preset allows (LaunchPlan.unfiltered). */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "git/index.h"

enum { UNCHANGED_AGE = 2 }; /* Seconds. ext4 with small inodes notes whole seconds. */

/* Whether each write after now will change the identity of this file, which is open for reading.
 * false too if another user owns the file, because then the kernel grants no lease. */
bool unchanged_is_certain(int fd, const struct stat *st);

/* Returns what identifies the index and the hash it was read with, or NULL without memory. The
 * caller owns it. */
char *unchanged_identity(const struct stat *st, GitHash hash);
