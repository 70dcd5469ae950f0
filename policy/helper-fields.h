/* SPDX-License-Identifier: Apache-2.0 */
/* The policy field bridge.helpers: Python files of the host that code inside can import. Each item
 * is FILE or FILE:MODULE. */
#pragma once

#include "policy/policy.h"

enum {
        HELPERS_MAX = 32,       /* helpers of one policy */
        HELPER_MODULE_MAX = 64, /* bytes of a module's name, without the NUL */
};

/* Writes the length of FILE in an item, and the module's name. Without :MODULE, the name is that of
 * the file without ".py". Returns 0, or -EINVAL with a static reason in *ret_why. */
int helper_split(const char *text, size_t *ret_length, char ret_module[HELPER_MODULE_MAX + 1],
                 const char **ret_why);

/* For the table of fields. */
int helper_field_check(const char *text, const char **ret_why);
int helper_field_added(Policy *policy, const char *where, Error *reterr);
