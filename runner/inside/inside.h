/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the helpers to /run/holt of a session's sandbox before anything runs there. /run is in
 * memory and new for each sandbox. Helpers have no authority: code inside may read, change and
 * imitate them until the session stops. A read-only mount would protect little, because the same
 * code can replace the session's /lib, from which the interpreter is loaded. */
#pragma once

#include "base/error.h"

/* Writes below root_fd, which is borrowed. Returns 0, -EEXIST if one of the files exists already,
 * or another negative errno. */
int inside_write(int root_fd, Error *reterr);
