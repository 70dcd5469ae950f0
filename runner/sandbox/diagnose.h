/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out why a host refuses a layer, and what to do about it. The host's settings are read only
 * after a failure. */
#pragma once

#include "base/error.h"
#include "policy/layers.h"

/* Completes the error of a launch. If one of the caller's limits is the reason (EMFILE, ENFILE,
 * EFBIG), the error becomes an ERROR_SETUP that names the limit. An ERROR_LAYER goes to
 * diagnose_layer(). Returns -errnum, or -EINVAL if there is no errno. */
int diagnose(Error *error);

/* Completes an ERROR_LAYER with known layer and errnum: appends the reason to its text and sets the
 * cure, unless it has one already. Returns -errnum, or -EINVAL if there is no errno. */
int diagnose_layer(Error *error);

/* Finds the layer that the host refuses after clone3(2) has failed with errnum. Returns a negative
 * errno. */
int diagnose_clone(int errnum, unsigned wanted_layers, Error *reterr);
