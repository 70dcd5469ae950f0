/* SPDX-License-Identifier: Apache-2.0 */
/* Host files for which a grant may be suggested. */
#pragma once

#include "base/strings.h"
#include "child/child.h"

/* Opens a host path as O_PATH, if a grant of it may be suggested. writable: directories that the
 * sandbox can write; no symlink in them is followed. for_writing: the grant would be --rw. Returns
 * an fd that the caller owns, -ENOENT if there is no such file, or another negative errno. A wide
 * directory, and a place that may hold secrets, give -EPERM. */
int refused_open_host(const char *path, const StrList *writable, bool for_writing);

/* Whether the host does not have the path, and a result may tell so: with such a path, it would
 * also tell that the host has it. No symlink is on the way, because it could lead to secrets. */
bool refused_is_nowhere(const char *path, const StrList *writable);

/* Whether a command may write the file or directory if it gets a grant. The command has the rights
 * of the caller; for root, an id-mapped mount gives it those of the owner. path may be "", for the
 * fd itself. */
bool refused_may_write(const Launch *launch, int fd, const char *path);

/* Whether the path lies in a directory of caches or tools, such as ~/.npm. Programs of the host run
 * or trust what lies there, so no grant for writing is suggested. */
bool refused_is_of_tools(const char *path);

/* Whether the path lies in a home directory, in /sys, or in a directory of the system's logs, mail
 * or boot files. Judged by its text alone. */
bool refused_is_closed(const char *path);

/* Returns why such a path is not shown, if there is a better reason than secrets. NULL if there is
 * none, or if memory is out. Owned by the caller. */
char *refused_closed_why(const char *path);

/* Whether the path is or lies in a git directory, or is the .git of a worktree. */
bool refused_is_of_git(const char *path);

/* Whether the path lies in a directory of a package manager of the system, such as /var/lib/dpkg.
 */
bool refused_is_of_packages(const char *path);

/* Returns why the directory is not suggested for writing, and another way; NULL if it is not too
 * wide, or if the command could not write there. Owned by the caller. */
char *refused_directory_why(const Launch *launch, const char *directory);

/* Returns the directory of a path; owned by the caller. */
char *refused_directory_of(const char *path);
bool refused_is_directory(int fd);

/* Whether the sandbox has a directory of its own there, in which the command can write. */
bool refused_is_private(const LaunchPlan *plan, const char *path);
/* Whether the word is a name in /tmp or the like. That file is the command's own, even if the host
 * has one of the same name. */
bool refused_is_own_file(const LaunchPlan *plan, const char *word);
