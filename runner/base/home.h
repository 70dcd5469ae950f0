/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* The caller's home: HOME, or else the account's home directory. NULL if neither is set; services
 * and cron jobs often run without HOME. The answer is cached, because root's environment is wiped
 * when holt gives up root. */
const char *home_path(void);
/* The home directory of uid in /etc/passwd, or NULL. The string is valid until a call for another
 * uid. */
const char *home_of_uid(uid_t uid);

/* The path of the caller's settings: HOLT_CONFIG, or holt/config.json in XDG_CONFIG_HOME or
 * ~/.config. NULL if HOLT_CONFIG is empty or "none", or if nothing says where the file is.
 * *ret_must is true if HOLT_CONFIG names it, so that it must exist. */
const char *home_config(bool *ret_must);
/* XDG_CONFIG_HOME, or ~/.config. Owned by the caller; NULL if neither is known, or memory is out.
 */
char *home_config_directory(void);

/* Whether the caller's home is path or lies below it. path is one that the kernel has returned. */
bool home_lies_below(const char *path);
