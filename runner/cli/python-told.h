/* SPDX-License-Identifier: Apache-2.0 */
/* What holt python says on stderr of a run that has ended; result is what python.run has answered.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

/* What is no text has no place on a terminal; that it is there is worth a line. */
void python_tell_displays(const JsonValue *result);
/* Of its output printed bytes have come. */
void python_tell_missed(const JsonValue *result, uint64_t printed);
/* How it ended, where that was not by itself. asked is the --timeout, in usec, or 0; fresh, whether
 * the interpreter was its own. */
void python_tell_end(const JsonValue *result, uint64_t asked, bool fresh);
