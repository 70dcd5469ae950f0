/* SPDX-License-Identifier: Apache-2.0 */
/* A session that is there, and the words of somebody who would have made it. */
#pragma once

#include "session/settings.h"

/* What was asked for: of settings all that has a note of the caller's, and what is named here. */
typedef struct CreateAsked {
        const Settings *settings;
        const StrList *env; /* NAME=VALUE each, without what is passed from the environment */
        bool preset, idle, tier, degraded;
} CreateAsked;

/* Whether the session called name is as it was asked for. What was not asked for may be anything;
 * of lists that widen (read_write, syscalls.allow) no more is there than was asked for.
 *
 * 0; -EEXIST with an ERROR_EXISTS that says what differs; or a negative errno of session_open(),
 * store_open(), settings_read(). */
int create_found(const char *name, const CreateAsked *asked, Error *reterr);
