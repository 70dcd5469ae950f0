/* SPDX-License-Identifier: Apache-2.0 */
/* Files of environment variables, for --env-file: NAME=VALUE on each line, as docker has them. */
#pragma once

#include "base/error.h"
#include "base/strings.h"

/* Fills ret with the variables of all files, and then with the items of env, which may be NULL. If
 * a name has several items, the last one counts. */
int env_files_read(const StrList *files, const StrList *env, StrList *ret, Error *reterr);
