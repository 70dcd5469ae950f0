/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps a command from writing through its stdin to a file that it must only read. In a session,
 * also keeps it from reading a file that it must only write. */
#pragma once

#include "sandbox/launch.h"

/* Protects files that are open for reading only and that the command must not write. Each such fd
 * from 0 to 2 is replaced by a sealed copy (stdio-files.c). Sets launch->stdio_shown. Call it after
 * all other parts of prepare_all(). Returns 0, -EFBIG with an ERROR_POLICY if the file is too
 * large, or another negative errno. */
int stdio_files_shield(Launch *launch, Error *reterr);

/* For one open file that a command of a live session gets as its stdin, stdout or stderr (number).
 * *fd is replaced by a copy if needed. *ret_detour: the command must not get *fd at all, but a pipe
 * from or to it. Returns 0, or a negative errno with an Error. */
int stdio_shield(const LaunchPlan *plan, int number, int *fd, bool *ret_detour, Error *reterr);
