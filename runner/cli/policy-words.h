/* SPDX-License-Identifier: Apache-2.0 */
/* The policy that a command line asks for, with the policy files that it names. In holt-full. */
#pragma once

#include "cli/options.h"

/* Starts policy (zeroed) from what --policy names, then applies the options of its fields. 0, or a
 * negative errno of policy_files_apply() or options_apply(). */
int policy_words_apply(Policy *policy, const OptionResult *result, Error *reterr);

/* The same, and then the file of the workspace's project narrows it (policy_files_project()). */
int policy_words_resolve(Policy *policy, const OptionResult *result, Error *reterr);
