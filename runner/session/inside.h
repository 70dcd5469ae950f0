/* SPDX-License-Identifier: Apache-2.0 */
/* What holt puts into a session's sandbox before anything runs there: the helpers, in /run/holt,
 * which is in memory and made afresh each time. They have no authority: what runs inside may read,
 * change and imitate them. */
#pragma once

#include "session/files.h"

/* 0 or a negative errno of files_write(). */
int inside_write(Files *files, Error *reterr);
