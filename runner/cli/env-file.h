/* SPDX-License-Identifier: Apache-2.0 */
/* Files of environment variables, for --env-file: NAME=VALUE on each line, as docker has them. */
#pragma once

#include "base/error.h"
#include "base/strings.h"

/* Adds the file's variables to ret, as NAME=VALUE. Values are taken literally: quotes are part of
 * them. Blank lines and lines that start with "#" are ignored. A line may end in CRLF.
 *
 * A command may have written the file, so it cannot pass the caller's variables: a NAME without a
 * value is an error. For the same reason, no symlink is followed on the way to the file.
 *
 * Returns 0, -EINVAL (the error names the line), -ELOOP, -EFBIG, or another errno of openat2(2). */
int env_file_read(const char *path, StrList *ret, Error *reterr);

/* Fills ret with the variables of all files, and then with the items of env, which may be NULL. The
 * last item of a name is the one that counts. */
int env_files_read(const StrList *files, const StrList *env, StrList *ret, Error *reterr);
