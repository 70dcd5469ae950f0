/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps a command from writing through its stdin to a file that it must only read. */
#pragma once

#include "sandbox/launch.h"

/* Protects files that are open for reading only and that the command must not write. Each such fd
 * from 0 to 2 is replaced by a sealed copy (stdio-files.c). Call it after all other
 * parts of prepare_all(). Returns 0, -EFBIG with an ERROR_POLICY if the file is too large, or
 * another negative errno. */
int stdio_files_shield(Launch *launch, Error *reterr);

/* The same for one open file. *fd is replaced if needed; number, 0 to 2, is its number in the
 * command. identity is NULL if it is the caller's own. landlock is its ABI, or 0 if it is not in
 * force. */
int stdio_shield(const LaunchPlan *plan, const Identity *identity, int landlock, int number,
                 int *fd, Error *reterr);
