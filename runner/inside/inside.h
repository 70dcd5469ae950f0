/* SPDX-License-Identifier: Apache-2.0 */
/* What holt puts into a session's sandbox before anything runs there: the helpers, in /run/holt,
 * which is in memory and made afresh each time. They have no authority: what runs inside may read,
 * change and imitate them, until the session stops. To mount them read-only would keep little: the
 * same commands can exchange the session's /lib, which the interpreter is loaded by. */
#pragma once

#include "base/error.h"

/* Below root_fd, which is borrowed. 0; -EEXIST where something is there already, or another
 * negative errno. */
int inside_write(int root_fd, Error *reterr);
