/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* The caller's home: HOME, or else the account's. NULL if neither says one: services and cron jobs
 * come without HOME. It is kept, since root's environment is wiped when root is given up. */
const char *home_path(void);
/* The home that /etc/passwd has for uid, until the next call for another one; NULL if it has none.
 */
const char *home_of_uid(uid_t uid);

/* Whether the caller's home is path, a path of the kernel's, or lies below it. */
bool home_lies_below(const char *path);
