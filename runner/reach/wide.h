/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of the host that are too wide to be writable inside. */
#pragma once

#include <stdbool.h>

/* Whether a writable mount of this path of the kernel needs --allow-wide, whoever runs holt. */
bool path_is_wide(const char *path);
