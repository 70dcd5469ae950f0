/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher while the command runs: passes signals and keys on, keeps the time, notes denials,
 * and says in the end how it ended. */
#pragma once

#include "sandbox/launch.h"
#include "sandbox/outcome.h"

/* Runs the sandbox to its end: when this returns, all that it has started is gone. Called with
 * every signal blocked (launch_start).
 *
 * 0, or a negative errno when the command could not be executed (reterr: exit code 126 or 127).
 * *ret is filled in both cases. */
int supervise(const Launch *launch, Sandbox *sandbox, Outcome *ret, Error *reterr);
