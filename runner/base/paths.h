/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as text, made absolute and normal. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

/* Whether path is "~" or starts with "~/", which only a shell expands. The macro is the cure if no
 * such path exists inside. */
static inline bool path_is_tilde(const char *path) {
        return path[0] == '~' && (path[1] == '\0' || path[1] == '/');
}
#define PATH_TILDE_CURE                                                                            \
        "holt does not expand \"~\". The home directory inside is /home/agent: write that path."

/* Joins two paths and normalises the result: "." and "//" disappear, and ".." removes a part. base
 * is absolute. Owned by the caller; NULL if memory is out. */
char *path_join(const char *base, const char *path);

/* Returns "DIRECTORY/NAME". Owned by the caller; NULL if memory is out. */
char *path_child(const char *directory, const char *name);

/* Whether path is prefix or lies below it. Both are in normal form. */
bool path_below(const char *path, const char *prefix);

/* The part of path after prefix and its slash: "" if path is prefix, NULL if it does not lie below
 * prefix. Borrowed from path. */
const char *path_rest(const char *path, const char *prefix);

/* Whether name exists in the directory, or holt cannot find out. A symlink is not followed. */
bool path_may_exist(int dir_fd, const char *name);

/* The kernel's own path of an open fd, after following all links. Returns 0 or a negative errno of
 * readlink(2). */
int path_of_fd(int fd, char ret[PATH_MAX]);

/* Adds the cure to the error of a host path that could not be opened. r is the negative errno; the
 * function returns it. */
int path_cure(const char *source, int r, Error *reterr);
