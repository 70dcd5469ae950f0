/* SPDX-License-Identifier: Apache-2.0 */
/* The files of links. Commands can change them at any time, so no symlink is followed. */
#pragma once

#include "files/files.h"
#include "files/path.h"

#define LINKS_DIRECTORY "/mnt/files"

/* Opens the file at a path below the directory dir_fd, which may be FD_NONE. Returns 0 or a
 * negative errno. */
int links_open_file(int dir_fd, const char *path, int *ret_fd, uint64_t *ret_size);
/* Finds the place of an upload, and the mode of a file that it replaces. Returns 0 or a negative
 * errno. */
int links_upload_place(Files *files, int dir_fd, const char *path, unsigned *ret_mode,
                       FilesPlace *ret);
