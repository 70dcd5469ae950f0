/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the policy of a command line, with the policy files that it names. Only holt-full has
 * this. */
#pragma once

#include "cli/options.h"

/* Starts policy (zeroed) from the values of --policy, then applies the options of its fields.
 * Returns 0, or a negative errno of policy_files_apply() or options_apply(). */
int policy_words_apply(Policy *policy, const OptionResult *result, Error *reterr);

/* Does the same, and then narrows the policy by the policy file in the workspace
 * (policy_files_project()). */
int policy_words_resolve(Policy *policy, const OptionResult *result, Error *reterr);
