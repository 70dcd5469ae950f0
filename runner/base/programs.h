/* SPDX-License-Identifier: Apache-2.0 */
/* The places of holt's programs relative to each other. A build tree has holt and holt-full in one
 * directory. An installation has holt in bin and holt-full in libexec/holt. */
#pragma once

#include "version.h"

/* Paths at which holt looks for holt-full, in this order, relative to the directory of holt. No
 * environment variable changes them. */
static const char *const programs_full[] = { "holt-full", "../libexec/holt/holt-full",
                                             HOLT_LIBEXEC "/holt-full" };

/* Paths at which holt and holt-full look for holt-egress. */
static const char *const programs_egress[]
        __attribute__((unused)) = { "holt-egress", "../libexec/holt/holt-egress",
                                    HOLT_LIBEXEC "/holt-egress" };

/* Paths at which holt-full looks for holt-gateway. */
static const char *const programs_gateway[]
        __attribute__((unused)) = { "holt-gateway", "../libexec/holt/holt-gateway",
                                    HOLT_LIBEXEC "/holt-gateway" };

/* Paths at which holt-full looks for holt, relative to the directory of holt-full. */
static const char *const programs_light[] = { "holt", "../../bin/holt" };
