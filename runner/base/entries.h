/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the names in a directory, like readdir(3), but without the heap. fdopendir(3) asks the
 * kernel again for facts about the fd that the caller knows, and takes memory for each directory.
 * That costs a start of holt more than the reading itself. */
#pragma once

#include <dirent.h>
#include <stddef.h>

/* Mark the variable as _uninitialized_: entries_begin() sets all that is read. */
typedef struct Entries {
        int fd;
        int errnum; /* Why the reading ended early, or 0. */
        size_t at, end;
        _Alignas(struct dirent) char data[4096];
} Entries;

/* fd  borrowed; a directory that is open for reading, and not O_PATH. If it is not valid, there are
 *     no entries, and errnum is set. */
void entries_begin(Entries *entries, int fd);

/* Returns the next entry, which is valid until the next call, or NULL at the end or after an error
 * of getdents64(2). "." and ".." are among the entries, and d_type may be DT_UNKNOWN. */
const struct dirent *entries_next(Entries *entries);
