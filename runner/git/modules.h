/* SPDX-License-Identifier: Apache-2.0 */
/* The submodules whose git directories lie in a repository (gitsubmodules(7)). The command cannot
 * change this list, whereas it could remove a gitlink from the index for a while. A run that starts
 * meanwhile would miss the submodule, and a `git reset` on the host would bring it back. */
#pragma once

#include "base/strings.h"

/* Adds the work trees of all submodules in modules/ of git_fd, a git directory, and of their
 * submodules. The paths are relative to top and in normal form. Work trees elsewhere are left out,
 * and so are those that ret has already.
 *
 * git and top are absolute paths as the kernel names them. git is the path of git_fd, whose mount
 * may have no path. Symlinks are not followed.
 *
 * Returns 0, -ENOMEM, or -EAGAIN (see repository_read()). */
int git_modules_find(int git_fd, const char *git, const char *top, StrList *ret);
