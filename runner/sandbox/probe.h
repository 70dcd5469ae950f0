/* SPDX-License-Identifier: Apache-2.0 */
/* Tries one layer for real, in a child that ends at once. For doctor, for --allow-degraded, and to
 * say which layer it was when the kernel refuses all of them with one errno. */
#pragma once

#include "base/error.h"
#include "policy/layers.h"

/* 0, or the negative errno of the step that failed; *ret_step then names it (static). */
int probe_layer(Layer layer, const char **ret_step);

/* The namespace flag (CLONE_NEW*) of a layer, or 0. */
unsigned long probe_namespace_flag(Layer layer);
