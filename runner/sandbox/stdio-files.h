/* SPDX-License-Identifier: Apache-2.0 */
/* A command that may not write a file must not write it through its stdin either. */
#pragma once

#include "sandbox/launch.h"

/* Gives the command a sealed copy in place of each of fds 0 to 2 that is open for reading only and
 * that it must not write (stdio-files.c). After all other parts of prepare_all(). 0; -EFBIG with an
 * ERROR_POLICY if the file is too large for that; or another negative errno. */
int stdio_files_shield(Launch *launch, Error *reterr);

/* The same for one open file, *fd, which is replaced if need be, and which the command would have
 * as number, 0 to 2. identity: NULL if it is the caller's own. landlock: its ABI,
 * or 0 if it is not in force. */
int stdio_shield(const LaunchPlan *plan, const Identity *identity, int landlock, int number,
                 int *fd, Error *reterr);
