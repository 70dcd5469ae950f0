/* SPDX-License-Identifier: Apache-2.0 */
/* What git notes for itself in a file, and goes by later. It is the command's to write, as git's;
 * but some of it leads git out of where it has any business:
 *
 * - a symbolic ref to a name that no ref has. ORIG_HEAD with "ref: commondir" has `git reset` write
 *   .git/commondir, with the name of a directory that the command has made, and one with
 *   "ref: refs/../../x" a file of the caller's;
 * - a path in MERGE_RR (git-rerere(1)) that is no file of the work tree: `git commit` copies what
 *   is there to where the next run reads it;
 * - MERGE_AUTOSTASH, which `git commit` applies without a word, gitlinks and all, and the like of a
 *   rebase;
 * - what a rebase, `git am` or `git cherry-pick` in progress would run, or write where it should
 *   not, when the caller goes on with it: it may be the caller's own, begun before the run;
 * - objects/info/alternates: git takes objects from the repositories it names, anyone's, to where
 *   the next run reads them, and `git fetch` starts a git in each, by its config. */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* Whether files in the directory may lead git astray: "" or one with a slash at its end, relative
 * to git's. */
bool git_state_in(const char *directory);

/* Whether the file called name in dir_fd leads git astray.
 *
 * path     where it is, relative to git's directory, in one of those that git_state_in() names
 * tree_fd  the work tree, O_PATH
 * ret      what it says, as far as that tells it from another; "" where it can't be read. One of
 *          somebody else's that can't be read leads nowhere: the command has not made it. */
bool git_state_leads(int tree_fd, int dir_fd, const char *name, const char *path,
                     char ret[PATH_MAX]);
