/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the paths in the table of fields (fields.c), beyond those of their kinds. Each returns
 * 0 or -EINVAL; *ret_why then says what is wrong, as the end of a sentence. */
#pragma once

#include "policy/policy.h"

/* A path of the host. */
int path_field_check(const char *path, const char **ret_why);
/* PATH[:TARGET], as of --ro. */
int path_field_check_bind(const char *text, const char **ret_why);
/* A path to hide: absolute, or relative to the workspace. */
int path_field_check_hide(const char *path, const char **ret_why);
/* A path to protect, relative to the workspace. */
int path_field_check_protect(const char *path, const char **ret_why);
