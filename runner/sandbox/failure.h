/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why init could not execute the command, and what to do. */
#pragma once

#include "helpers/init-protocol.h"
#include "sandbox/launch.h"

/* The cure of E2BIG from execve(2). init also gets the words and variables of holt run's
 * command. */
extern const char failure_too_long[];

/* Makes the error of a failure that init has reported. The launcher looks at the files itself, in
 * the mounts of the plan. If these do not show enough, the error says less.
 *
 * Returns a negative errno; *reterr is ERROR_NOT_FOUND, ERROR_NOT_EXECUTABLE or ERROR_SETUP. */
int failure_explain(const Launch *launch, const InitMessage *failure, Error *reterr);
