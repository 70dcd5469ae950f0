/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's identity in git, for commits that a command makes (env.git_identity). */
#pragma once

#include "policy/policy.h"

/* If the policy asks for it, adds GIT_AUTHOR_NAME, GIT_COMMITTER_NAME and the two for the e-mail
 * address to env.set. A variable that env.set has already stays. Values are those of the caller's
 * own variables, or user.name and user.email in the caller's git config. Includes under a condition
 * (includeIf) do not count, because no repository is looked at.
 *
 * The configs are parsed, and git is not run: it might lie in the workspace, and no command may
 * choose what holt runs.
 *
 * Returns 0, -ENOENT with an ERROR_POLICY if a value is missing, or -ENOMEM. */
int git_identity_set(Policy *policy, Error *reterr);
