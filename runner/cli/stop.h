/* SPDX-License-Identifier: Apache-2.0 */
/* Letting sessions rest, and taking them away, for who holds the fd of their directory. */
#pragma once

#include "base/error.h"

/* Returns when the session is at rest. 0 or a negative errno. */
int stop_session(const char *name, int dir_fd, Error *reterr);
/* ... and gone. -EWOULDBLOCK with an ERROR_BUSY where somebody has started it meanwhile, -ENOENT
 * where somebody else has taken it away. */
int stop_and_remove(const char *name, int dir_fd, Error *reterr);
