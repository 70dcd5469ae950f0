/* SPDX-License-Identifier: Apache-2.0 */
/* Protected paths that did not exist when the sandbox started.
 *
 * A path that exists is mounted read-only over itself (build-mounts.c). A missing path could be
 * mounted over only with a stub on the host, and the stub would outlive a kill -9. So holt looks at
 * the path after the sandbox has ended. If a file has appeared, it is set aside before the host's
 * git finds it. */
#pragma once

#include <stdbool.h>

#include "policy/plan.h"

/* A file NAME is set aside as NAME.holt-untrusted. If that name is taken, a number follows. In
 * git's directories of refs, ".lock" follows too. */
#define GUARD_SUFFIX ".holt-untrusted"

/* The suffix that a file's name gets after GUARD_SUFFIX in dir: ".lock" or "". dir is relative to
 * the workspace and ends in a slash, or is "" for the workspace itself. */
const char *guard_aside_end(const char *dir);

/* Whether a guard is mounted over path or over a directory above it. path is relative to the
 * workspace. */
bool guard_holds(const LaunchPlan *plan, const char *path);

/* Restores the owner's permissions on a directory, if the command has removed them. dir_fd may be
 * O_PATH. Returns 0 or a negative errno. */
int guard_make_usable(int dir_fd);

/* Returns the first protected path, in the workspace or another mount, that exists now but did not
 * when the sandbox started. NULL if there is none. workspace_fd may be FD_NONE. */
const char *guard_find_made(const LaunchPlan *plan, int workspace_fd);

/* Sets aside files that have appeared at the plan's guards below workspace_fd (or FD_NONE), if
 * the sandbox could write there. That includes a file that replaced a pinned one. Symlinks are
 * not followed. It also sets aside:
 *
 * - the .git of each submodule that had none at the start, according to the current indexes,
 *   because another run may have added it;
 * - the workspace's own index, if holt and git could read it differently, or if checking all its
 *   gitlinks would take too long;
 * - files through which git would write, or that would lead it astray (strays.h).
 *
 * The same is done in the plan's other mounts that have guards. The sweep ends within a few
 * seconds, whatever the command has made. The new names are added to moved; those of other mounts
 * are absolute paths of the host.
 *
 * restored  if not NULL, nothing runs in the sandbox any more. Small files that the host replaced
 *           get their earlier content again, and their paths are added in the same form.
 *
 * Returns 0, or the negative errno of the first failed rename. A failure does not stop the
 * others. */
int guard_sweep(const LaunchPlan *plan, int workspace_fd, StrList *moved, StrList *restored,
                Error *reterr);
