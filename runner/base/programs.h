/* SPDX-License-Identifier: Apache-2.0 */
/* Where holt's two programs are, as seen from each other: in a build tree both are in one
 * directory, below a prefix they are in bin and libexec/holt. */
#pragma once

#include "version.h"

/* Where holt looks for holt-full, in this order, from the directory that holt is in. Nothing of the
 * environment decides what is executed. */
static const char *const programs_full[] = { "holt-full", "../libexec/holt/holt-full",
                                             HOLT_LIBEXEC "/holt-full" };

/* Places of holt, relative to the directory of holt-full. */
static const char *const programs_light[] = { "holt", "../../bin/holt" };
