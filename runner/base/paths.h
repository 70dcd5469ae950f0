/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as text: absolute and in normal form, or made so. Nothing here but path_of_fd() looks at
 * the file system. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

/* "~" or "~/...", which is a home to shells alone, and what to do where there is no such path
 * inside.
 */
static inline bool path_is_tilde(const char *path) {
        return path[0] == '~' && (path[1] == '\0' || path[1] == '/');
}
#define PATH_TILDE_CURE                                                                            \
        "\"~\" is taken as it is; the home inside is /home/agent: name what is in it by that."

/* Joins and normalises: "." and "//" go, ".." takes a part away. base is absolute. Owned by the
 * caller, NULL when memory is out. */
char *path_join(const char *base, const char *path);

/* Whether path is prefix or lies below it; both in normal form. */
bool path_below(const char *path, const char *prefix);

/* The part of path behind prefix and its slash: "" if path is prefix, NULL if it does not lie below
 * prefix. Borrowed from path. */
const char *path_rest(const char *path, const char *prefix);

/* The kernel's own path of an open fd, whatever links led to it. 0 or a negative errno of
 * readlink(2). */
int path_of_fd(int fd, char ret[PATH_MAX]);

/* Adds to the error of a host path that could not be opened what to do. r is the negative errno;
 * returns it. */
int path_cure(const char *source, int r, Error *reterr);
