/* SPDX-License-Identifier: Apache-2.0 */
/* The submodules that a repository keeps the git directories of (gitsubmodules(7)). The command
 * can't change that list, as it can the index: it may take a gitlink out for a while, and the run
 * that starts then, beside it or after it, would not know what the host's `git reset` brings back.
 */
#pragma once

#include "base/strings.h"

/* Adds the work trees of those that git_fd, a git directory, has in modules/, and of theirs: paths
 * relative to top, in normal form; none that lies elsewhere, and none that is in ret already. git
 * and top are absolute paths of the kernel's, git that of git_fd, which may be of a mount to which
 * none leads. Links are not followed. 0, -ENOMEM, or -EAGAIN
 * as of repository_read(). */
int git_modules_find(int git_fd, const char *git, const char *top, StrList *ret);
