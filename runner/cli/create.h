/* SPDX-License-Identifier: Apache-2.0 */
/* Making a session by the words of a command line. */
#pragma once

#include "session/owner.h"

/* argv is of `holt create` without the name: argv[0] is not looked at. cwd, absolute, is what
 * relative paths are relative to; NULL for the working directory. With ret_owner, which may be
 * NULL, the session goes when *ret_owner is cleared. With ret_made, which may be NULL, one that is
 * there will do where it is as the words say; whether it was made now. 0 or a negative errno. */
int create_session(const char *name, const char *cwd, int argc, const char *const *argv,
                   Owner *ret_owner, bool *ret_made, Error *reterr);
