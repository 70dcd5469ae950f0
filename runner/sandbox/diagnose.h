/* SPDX-License-Identifier: Apache-2.0 */
/* Why a host refuses a layer, and what cures it. Reads the host's settings only after something has
 * failed. */
#pragma once

#include "base/error.h"
#include "policy/layers.h"

/* Completes the error of a launch: one that a limit of the caller's is the reason of (EMFILE,
 * ENFILE, EFBIG) becomes an ERROR_SETUP that names the limit, and an ERROR_LAYER goes to
 * diagnose_layer(). Returns -errnum, or -EINVAL where there is none. */
int diagnose(Error *error);

/* Completes an ERROR_LAYER of which layer and errnum are known: appends the reason to its text and
 * sets the cure, unless it has one already. Returns -errnum, or -EINVAL where there is none. */
int diagnose_layer(Error *error);

/* clone3(2) with the namespaces has failed with errnum: finds the layer that is refused. Returns
 * -errnum. */
int diagnose_clone(int errnum, unsigned wanted_layers, Error *reterr);
