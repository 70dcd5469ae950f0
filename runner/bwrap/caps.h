/* SPDX-License-Identifier: Apache-2.0 */
/* Names of capabilities. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* Sets *ret to the bit of the capability, such as "CAP_NET_RAW", or to all bits for "ALL". Returns
 * 0 or -EINVAL. */
int bwrap_capability(const char *name, uint64_t *ret, Error *reterr);
