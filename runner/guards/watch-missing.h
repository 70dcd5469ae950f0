/* SPDX-License-Identifier: Apache-2.0 */
/* Hidden paths that do not exist when the sandbox starts.
 *
 * Theory of operation. Nothing can be mounted over a missing path. If the path appears while the
 * sandbox is running, the command can read it. So holt watches the deepest existing directory of
 * the path (guards/watch.h). When names in it change, holt looks the rest of the path up. A
 * directory that has appeared on the way is watched from then on, too. Nobody can tell whether the
 * host or the command has made the path. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef struct WatchMissing WatchMissing;

/* Adds a path, as named inside, to the list at *list. dir_fd is its deepest existing directory,
 * watched and borrowed. rest is the part of the path below it. Returns 0 or a negative errno. */
int watch_missing_add(WatchMissing **list, const char *path, int dir_fd, const char *rest,
                      Error *reterr);
/* NULL is legal. Returns NULL. */
WatchMissing *watch_missing_free(WatchMissing *list);

/* Returns the first path that exists now, or that holt cannot look up. NULL if there is none. */
const char *watch_missing_find_made(WatchMissing *list);

/* Asks for SIGIO when names in the directory change (F_NOTIFY). Returns 0 or a negative errno. */
int watch_directory(int dir_fd);
