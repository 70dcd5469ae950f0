/* SPDX-License-Identifier: Apache-2.0 */
/* The code that holt python is given as a file. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* Reads the caller's file at path, or stdin if path is "-". Commands of the session may have made
 * the path, so no link of theirs is followed (transfer_open_input()).
 *
 * timeout: usec for all of it, 0 for no limit. *ret is owned by the caller, without a NUL in it.
 * 0; -ETIMEDOUT, which has been told on stderr and sets no error; or another negative errno. */
int python_code_read(const char *session, const char *path, uint64_t timeout, char **ret,
                     Error *reterr);
