/* SPDX-License-Identifier: Apache-2.0 */
/* Checks files that holt obeys. They must belong to the effective user, and nobody else may write
 * to them. */
#pragma once

#include "base/error.h"

/* Checks the entry `name` of dir_fd, or dir_fd itself if name is "". path is for errors.
 *
 * Returns 0, or -ENOENT without an error if it does not exist. -EPERM means that it belongs to
 * another user, is writable by its group or others, or is a symlink. Through an id-mapped mount,
 * the owner is the mapped one. */
int private_check(int dir_fd, const char *name, const char *path, Error *reterr);

/* Checks each directory above path, which is absolute, and each symlink on the way there. Anybody
 * who can rename one of them can replace the file at path. Each must belong to the effective user
 * or root. Others may write to it only if it is sticky. Like ssh with StrictModes, the check
 * accepts a writable group whose only member is the effective user.
 *
 * Returns 0, also if a part of the path does not exist, or -EPERM. */
int private_check_above(const char *path, Error *reterr);

/* Checks a file of the caller's settings, and everything above it, by the same rules. */
int private_check_file(const char *path, Error *reterr);
