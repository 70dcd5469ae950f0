/* SPDX-License-Identifier: Apache-2.0 */
/* The process that the caller has started, while the command runs. */
#pragma once

#include "bwrap/start.h"
#include "outcome/outcome.h"

typedef struct BwrapEnd {
        bool started; /* the command was executed */
        Outcome outcome;
} BwrapEnd;

/* Waits for the command, at most for the plan's timeout: then every process of the sandbox is
 * killed. Processes that a command has left behind when it ends go on, and with them the reaper,
 * unless there is a timeout. Returns 0, or a negative errno if the command could not be executed.
 */
int bwrap_monitor(const LaunchPlan *plan, const BwrapSandbox *sandbox, BwrapEnd *ret,
                  Error *reterr);
