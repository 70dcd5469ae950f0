/* SPDX-License-Identifier: Apache-2.0 */
/* The symlinks of a tree that holt cp copies. Only those that cannot lead out of the tree are
 * copied. A command may have made another one, and chosen the file to which its copy would lead. */
#pragma once

#include "base/error.h"
#include "files/walk.h"
#include "rpc/client.h"

/* Copies the symlink `entry` into the session, as path. Returns 0, 1 if it would lead out of the
 * tree, or a negative errno. */
int link_put(RpcClient *client, const WalkEntry *entry, const char *path, Error *reterr);
/* Makes a symlink of the session in the host directory above_fd. path is relative to the top of the
 * tree. Returns 0, 1 as above, or a negative errno of symlinkat(2). */
int link_get(const JsonValue *entry, const char *path, int above_fd, const char *name);
