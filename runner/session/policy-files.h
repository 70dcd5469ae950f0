/* SPDX-License-Identifier: Apache-2.0 */
/* Policy files: opening and reading them, and the order in which they make a policy. In holt-full.
 */
#pragma once

#include "policy/plan.h"

/* In the workspace; may only narrow. */
#define POLICY_PROJECT_FILE ".holt.json"

/* Reads a policy file of the caller's, or stdin where name is "-". It has to be a regular file
 * (stdin may be a pipe) of at most JSON_SIZE_MAX bytes.
 *
 * project  it is one of a project's own, which is never a link.
 * ret  owned by the caller; ends in a NUL that is not counted.
 *
 * 0, -EINVAL (not a regular file), -ELOOP (such a link), -EFBIG, -ENOMEM, another negative errno of
 * open(2) or read(2).
 */
int policy_files_read(const char *name, bool project, char **ret, size_t *ret_length,
                      Error *reterr);

/* Starts policy (zeroed) from presets and files, in the order of their names, or from
 * POLICY_PRESET_DEFAULT if there are none. 0, or a negative errno of policy_files_read(),
 * policy_load() or policy_preset(). */
int policy_files_apply(Policy *policy, const char *const *names, size_t count, Error *reterr);

/* Hands over the files that made the policy, open since they were read: those of --policy, and
 * that of the project, as one of workspace (NULL: it was not asked for). stdin is among them if it
 * is a regular file, by whatever name, and is /dev/null from then on. Once; 0 or a negative errno.
 */
int policy_files_inputs(const char *workspace, PlanInputs *ret, Error *reterr);

/* Closes them instead, after an error: a server goes on with other policies. */
void policy_files_forget(void);

/* Lets the project's own file narrow policy.
 *
 * workspace_fd  borrowed; a directory, which the sandbox may have written in: the file is opened
 *               below it and never through a link.
 *
 * 0 (narrowed, or there is no such file), -ELOOP (it is a link), -EPERM (it would widen), or as
 * policy_files_read(). */
int policy_files_project(Policy *policy, int workspace_fd, Error *reterr);
