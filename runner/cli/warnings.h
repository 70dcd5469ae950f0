/* SPDX-License-Identifier: Apache-2.0 */
/* What a run was asked on the command line that has no effect there: likely a mistake, and no
 * reason to fail. A policy file serves many places, so what it names need not be in all of them. */
#pragma once

#include "base/strings.h"
#include "sandbox/launch.h"

/* Adds a line for each to ret.
 *
 * launch  prepared (launch_prepare()): its plan's mounts are open.
 *
 * 0, or -ENOMEM. */
int warnings_find(const Policy *policy, const Launch *launch, StrList *ret);
