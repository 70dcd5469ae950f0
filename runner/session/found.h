/* SPDX-License-Identifier: Apache-2.0 */
/* An existing session, compared with what somebody asks for who would have made it. */
#pragma once

#include "session/make.h"

/* Compares session name with spec. What spec does not say may be anything. Lists that widen the
 * policy (read_write, syscalls.allow) must not have more items than spec has.
 *
 * 0; -EEXIST with an ERROR_EXISTS that says what differs; or a negative errno of session_open(),
 * store_open() or settings_read(). */
int session_compare(const char *name, const SessionSpec *spec, Error *reterr);
