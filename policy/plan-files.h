/* SPDX-License-Identifier: Apache-2.0 */
/* Files of /etc that holt writes for one sandbox. */
#pragma once

#include "policy/plan.h"

/* Adds a read-only file. A file of the host at this path is not shown then. Text for /etc/gitconfig
 * and /etc/hosts is appended to holt's own.
 *
 * path   absolute and in normal form, below /etc
 * text   Takes ownership, also on failure. It ends in a NUL, which size does not count.
 *
 * Returns 0; -EINVAL with a static reason in *ret_why, if another file has the path, every sandbox
 * has an entry of the host there, or the text is too long; or -ENOMEM. */
int plan_add_file(LaunchPlan *plan, const char *path, char *text, size_t size,
                  const char **ret_why);
