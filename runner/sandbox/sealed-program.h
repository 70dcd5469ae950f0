/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of holt in memory files that nobody can change, so that no file of the host is behind
 * them. */
#pragma once

#include <stddef.h>

#include "base/error.h"

/* Makes a sealed memory file of the bytes. name: for /proc/PID/exe and errors. The caller owns
 * *ret_fd. Returns 0 or a negative errno. */
int sealed_file(const char *name, const void *bytes, size_t size, int *ret_fd, Error *reterr);
