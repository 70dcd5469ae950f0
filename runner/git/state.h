/* SPDX-License-Identifier: Apache-2.0 */
/* Files in which git notes its own state and which it follows later. The command may write them, as
 * git does. But some contents make git act in places where it should not:
 *
 * - A symbolic ref to a name that is not a ref. If ORIG_HEAD says "ref: commondir", `git reset`
 *   writes .git/commondir with the name of a directory that the command has made. If it says
 *   "ref: refs/../../x", git writes a file of the caller's.
 * - A path in MERGE_RR (git-rerere(1)) that is not a file of the work tree. `git commit` copies the
 *   file to a place where the next run reads it.
 * - MERGE_AUTOSTASH, and the file autostash of a rebase. `git commit` applies them silently,
 *   gitlinks included.
 * - The state of a rebase, `git am` or `git cherry-pick` in progress. When the caller continues it,
 *   git would run the commands, or write the files, that the state names. The caller may have
 *   started the operation before the run.
 * - objects/info/alternates. git copies objects from any repository named there, whoever owns it,
 *   to places that the next run can read. `git fetch` starts a git in each of them, with its
 *   config. */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* Whether files in the directory may lead git astray. The directory is "" or ends in a slash, and
 * is relative to git's directory. */
bool git_state_in(const char *directory);

/* Whether the file `name` in dir_fd leads git astray.
 *
 * path     the file's path, relative to git's directory; in a directory of git_state_in()
 * tree_fd  the work tree, O_PATH
 * ret      enough of the content to tell this file from another; "" if it cannot be read
 *
 * An unreadable file of another user is harmless: the command has not made it. */
bool git_state_leads(int tree_fd, int dir_fd, const char *name, const char *path,
                     char ret[PATH_MAX]);
