/* SPDX-License-Identifier: Apache-2.0 */
/* The output of holt show, which holt create prints, too. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/strings.h"

/* Prints a session to stdout. warnings become a member of the JSON; may be NULL. Returns 0 or a
 * negative errno. */
int show_session(const char *name, bool json, const StrList *warnings, Error *reterr);
