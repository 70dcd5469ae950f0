/* SPDX-License-Identifier: Apache-2.0 */
/* What holt show prints, for others that print it. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* To stdout. 0 or a negative errno. */
int show_session(const char *name, bool json, Error *reterr);
