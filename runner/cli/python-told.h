/* SPDX-License-Identifier: Apache-2.0 */
/* The messages on stderr at the end of a run of holt python or a call of holt shell. result is the
 * result of python.run or shell.run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

/* Reports the displays that are not text, because a terminal cannot show them. */
void python_tell_displays(const JsonValue *result);
/* Reports missing output. printed: number of bytes that have arrived. */
void python_tell_missed(const JsonValue *result, uint64_t printed);
/* Reports how the run ended, unless it ended by itself. asked: usec of --timeout, or 0. fresh: the
 * run had its own interpreter (--fresh). */
void python_tell_end(const JsonValue *result, uint64_t asked, bool fresh);
/* The same for a call of holt shell. */
void shell_tell_end(const JsonValue *result, uint64_t asked);
