/* SPDX-License-Identifier: Apache-2.0 */
/* Tests one layer for real, in a child that ends at once. holt doctor and --allow-degraded use
 * it. So does the search for the refused layer, if the kernel returns the same errno for all. */
#pragma once

#include "base/error.h"
#include "policy/layers.h"

/* Returns 0, or the negative errno of the failed step. *ret_step is the step's name (static). */
int probe_layer(Layer layer, const char **ret_step);

/* Returns the namespace flag (CLONE_NEW*) of a layer, or 0. */
unsigned long probe_namespace_flag(Layer layer);
