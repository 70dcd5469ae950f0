/* SPDX-License-Identifier: Apache-2.0 */
/* What holt show prints, for others that print it. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/strings.h"

/* To stdout. warnings, as a member of the JSON, or NULL. 0 or a negative errno. */
int show_session(const char *name, bool json, const StrList *warnings, Error *reterr);
