/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as text: absolute and in normal form, or made so. Nothing here but path_of_fd() looks at
 * the file system. */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* Joins and normalises: "." and "//" go, ".." takes a part away. base is absolute. Owned by the
 * caller, NULL when memory is out. */
char *path_join(const char *base, const char *path);

/* Whether path is prefix or lies below it; both in normal form. */
bool path_below(const char *path, const char *prefix);

/* The kernel's own path of an open fd, whatever links led to it. 0 or a negative errno of
 * readlink(2). */
int path_of_fd(int fd, char ret[PATH_MAX]);
