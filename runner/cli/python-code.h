/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the code that holt python runs from a file. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* Reads the host file at path, or stdin if path is "-". Commands of the session may have made a
 * link on the path, so none of theirs is followed (transfer_open_input()).
 *
 * timeout: usec for all of it, 0 for no limit. The caller owns *ret, which contains no NUL. Returns
 * 0, -ETIMEDOUT or another negative errno. -ETIMEDOUT is reported on stderr and sets no error. */
int python_code_read(const char *session, const char *path, uint64_t timeout, char **ret,
                     Error *reterr);
