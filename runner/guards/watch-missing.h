/* SPDX-License-Identifier: Apache-2.0 */
/* Hidden paths that do not exist when the sandbox starts.
 *
 * Theory of operation. There is nothing that could be mounted over. If such a path comes to be
 * while the sandbox lives, it can be read. So the deepest directory of it that exists is watched
 * (guards/watch.h), and when names in it change, the rest of the path is looked up. A directory
 * that has appeared on the way is watched from then on, too. Nobody can tell whether the host or
 * the command has made the path. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef struct WatchMissing WatchMissing;

/* Adds a path, by its name inside, to the list at *list. dir_fd is that of the directory, watched
 * and borrowed; rest is the path below it. 0 or a negative errno. */
int watch_missing_add(WatchMissing **list, const char *path, int dir_fd, const char *rest,
                      Error *reterr);
/* NULL is legal; returns NULL. */
WatchMissing *watch_missing_free(WatchMissing *list);

/* The first path that exists now, or that holt can't tell about, or NULL. */
const char *watch_missing_find_made(WatchMissing *list);

/* Asks for SIGIO when names in the directory change (F_NOTIFY). 0 or a negative errno. */
int watch_directory(int dir_fd);
