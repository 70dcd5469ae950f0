/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's identity in git, for commits that a command makes (env.git_identity). */
#pragma once

#include "policy/policy.h"

/* If the policy asks for it, adds user.name and user.email of the caller's git config to env.set,
 * as PLAN_GIT_NAME and PLAN_GIT_EMAIL. Also adds those of the caller's variables GIT_AUTHOR_NAME,
 * GIT_COMMITTER_NAME and the two for the e-mail address that are set. A variable that env.set
 * already has stays unchanged. Includes under a condition (includeIf) do not count, because no
 * repository is looked at. The workspace's own config is not passed, because git inside reads it.
 *
 * holt parses the configs itself. It does not run git, because a command may have put a git program
 * into the workspace.
 *
 * Returns 0, -ENOENT with an ERROR_POLICY if a value is missing in all of these, or -ENOMEM. */
int git_identity_set(Policy *policy, Error *reterr);
