/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and reads policy files, and applies them in order. In holt-full only. */
#pragma once

#include "policy/plan.h"

/* Reads a policy file of the caller, or stdin if name is "-". It must be a regular file of at most
 * JSON_SIZE_MAX bytes; stdin may also be a pipe.
 *
 * project  the file is a project's own, and must not be a symlink.
 * ret  owned by the caller; ends in a NUL that is not counted.
 *
 * Returns 0, -EINVAL (not a regular file), -ELOOP (a project's file is a symlink), -EFBIG, -ENOMEM,
 * or another negative errno of open(2) or read(2). */
int policy_files_read(const char *name, bool project, char **ret, size_t *ret_length,
                      Error *reterr);

/* Applies the policy file `name` to policy, after the file that it extends. "-" is stdin. Returns
 * the errors of policy_files_read() and policy_load(). */
int policy_files_load(Policy *policy, const char *name, Error *reterr);

/* Makes the next policy that names no preset start from the file at path, the caller's settings,
 * instead of POLICY_PRESET_DEFAULT. The file must pass private_check_file(). path is borrowed. If
 * it is NULL, policies start from that preset again. */
void policy_files_start_from(const char *path);
/* The settings from which the last policy has started, or NULL. */
const char *policy_files_config(void);

/* Refuses these settings if they lie in a directory that the plan's command can write. A command of
 * an earlier run may have made them, while XDG_CONFIG_HOME was not set. ~/.config is hidden from
 * every command. Returns 0, -EPERM or -ENOMEM. */
int policy_files_check_config(const LaunchPlan *plan, Error *reterr);

/* Builds policy (zeroed) from presets and files, in the order of names, or from
 * POLICY_PRESET_DEFAULT without any. The argument where names the source of the names, as for
 * policy_preset(). Returns 0, or a negative errno of policy_files_read(), policy_load() or
 * policy_preset(). */
int policy_files_apply(Policy *policy, const char *const *names, size_t count, const char *where,
                       Error *reterr);

/* Hands over the files that made the policy, still open since they were read. They are those of
 * --policy, and the project's file with a path below workspace. workspace is NULL unless the
 * project's file was read. If stdin is a regular file and one of them, under any name, it is
 * included and becomes /dev/null. Call it once. Returns 0 or a negative errno. */
int policy_files_inputs(const char *workspace, PlanInputs *ret, Error *reterr);

/* Closes these files after an error, so that a server can go on with other policies. */
void policy_files_forget(void);

/* Lets the project's own file narrow policy.
 *
 * workspace_fd  borrowed directory. The sandbox may have written in it, so the file is opened below
 * it and never through a symlink.
 *
 * Returns 0 (narrowed, or no such file), -ELOOP (it is a symlink), -EPERM (it would widen the
 * policy), or an errno of policy_files_read(). */
int policy_files_project(Policy *policy, int workspace_fd, Error *reterr);
