/* SPDX-License-Identifier: Apache-2.0 */
/* Files of environment variables, for --env-file: NAME=VALUE on each line, as docker has them. */
#pragma once

#include "base/error.h"
#include "base/strings.h"

/* Fills ret with the variables of all files, and then with the items of env, which may be NULL. The
 * last item of a name is the one that counts. */
int env_files_read(const StrList *files, const StrList *env, StrList *ret, Error *reterr);
