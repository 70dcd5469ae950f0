/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher while the command runs. It passes signals and keys on, enforces the timeout, counts
 * denials, and reports how the command ended. */
#pragma once

#include "outcome/outcome.h"
#include "sandbox/launch.h"

/* Runs the sandbox to its end: when this returns, all its processes are gone. Every signal must be
 * blocked (launch_prepare()).
 *
 * Returns 0, or a negative errno if the command could not be executed (reterr: exit code 126 or
 * 127). *ret is filled in both cases. */
int supervise(const Launch *launch, Sandbox *sandbox, Outcome *ret, Error *reterr);
