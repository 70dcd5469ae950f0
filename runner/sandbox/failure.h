/* SPDX-License-Identifier: Apache-2.0 */
/* Why init could not execute the command, and what to do. */
#pragma once

#include "helpers/init-protocol.h"
#include "sandbox/launch.h"

/* The cure of E2BIG from execve(2); init has the words and variables of holt run's command, too. */
extern const char failure_too_long[];

/* Makes the error of a failure that init has told of. What it says of files is the launcher's own
 * look at them, by the mounts of the plan; where that does not show enough it says less.
 *
 * A negative errno; *reterr is ERROR_NOT_FOUND, ERROR_NOT_EXECUTABLE or ERROR_SETUP. */
int failure_explain(const Launch *launch, const InitMessage *failure, Error *reterr);
