/* SPDX-License-Identifier: Apache-2.0 */
/* Directories that a client of holt mcp calls its roots. */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "base/strings.h"

enum { ROOTS_MAX = 16 };

/* Reads the result of roots/list, and judges each root (see roots.c). ret: empty; gets the kernel's
 * own paths, without doubles. Returns 0, or a negative errno with the reason in one sentence. */
int roots_read(const JsonValue *result, StrList *ret, Error *reterr);
