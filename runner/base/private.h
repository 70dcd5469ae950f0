/* SPDX-License-Identifier: Apache-2.0 */
/* Files that holt obeys: they have to be the effective user's own, and nobody else may write to
 * them. */
#pragma once

#include "base/error.h"

/* Checks what dir_fd has under name, or dir_fd itself if name is "". path is for errors.
 *
 * 0; -ENOENT without an error where nothing is there; or -EPERM where it belongs to another user,
 * may be written by its group or others, or is a symlink. Through an id-mapped mount the owner is
 * the mapped one. */
int private_check(int dir_fd, const char *name, const char *path, Error *reterr);

/* Checks each directory above path, which is absolute, and each symlink on the way there: whoever
 * can rename one of them can put another file in the place of the one at path. Each must belong to
 * the effective user or root, and may be writable by nobody else, unless it is sticky. As ssh does
 * with StrictModes, a directory may be writable by a group that is the effective user's alone.
 *
 * 0, also if a part of the path does not exist, or -EPERM. */
int private_check_above(const char *path, Error *reterr);
