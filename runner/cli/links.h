/* SPDX-License-Identifier: Apache-2.0 */
/* The symlinks of a tree that holt cp copies. Only those that cannot lead out of the tree are
 * copied: a command may have made a link, and chosen the file to which it would lead. */
#pragma once

#include "base/error.h"
#include "files/walk.h"
#include "rpc/client.h"

/* Returns whether the symlink at path, relative to the top of the tree, leads to a place in the
 * tree, whether or not that exists. It may climb with ".." at the start of its target only: after a
 * name, ".." could start from the end of another link. So every other link on the way is one of the
 * tree's own, for which the same holds. An absolute target leads out. */
bool link_stays(const char *path, const char *target);

/* Copies the symlink `entry` into the session, as path. Returns 0, 1 if it would lead out of the
 * tree, or a negative errno. */
int link_put(RpcClient *client, const WalkEntry *entry, const char *path, Error *reterr);
/* Makes a symlink of the session in the host directory above_fd. path is relative to the top of the
 * tree. Returns 0, 1 as above, or a negative errno of symlinkat(2). */
int link_get(const JsonValue *entry, const char *path, int above_fd, const char *name);
