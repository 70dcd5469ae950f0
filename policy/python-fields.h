/* SPDX-License-Identifier: Apache-2.0 */
/* The checks and words of python.* in the table of fields (fields.c). */
#pragma once

#include "policy/policy.h"

/* The URL of an index. Returns 0, or -EINVAL with a static reason, whose second line is the cure.
 */
int python_index_check(const char *text, const char **ret_why);

extern const char *const python_install[];
extern const unsigned char python_install_ranks[];
