/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of the host that are too wide to be writable inside. */
#pragma once

#include <stdbool.h>

/* Whether a writable mount of path needs --allow-wide for every caller. path is the kernel's own
 * name. */
bool path_is_wide(const char *path);
