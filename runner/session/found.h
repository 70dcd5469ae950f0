/* SPDX-License-Identifier: Apache-2.0 */
/* Compares an existing session with the request of a caller who would have created it. */
#pragma once

#include "session/make.h"

/* Compares the session called name with spec. Only values that spec sets are compared. Lists that
 * widen the policy (read_write, syscalls.allow) must not have more items than spec has.
 *
 * Returns 0; -EEXIST with an ERROR_EXISTS that names the difference; or a negative errno of
 * session_open() or sources_open(). */
int session_compare(const char *name, const SessionSpec *spec, Error *reterr);
