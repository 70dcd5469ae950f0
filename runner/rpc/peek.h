/* SPDX-License-Identifier: Apache-2.0 */
/* What a line that can't be read was about. */
#pragma once

#include "base/json.h"

/* head  how the line begins, a string.
 *
 * An object of its "id" and "method", where they come before anything that is an array, an object
 * or not whole, as programs write them. NULL where there is neither, or memory is out. Freed by
 * json_free(). */
JsonDocument *rpc_peek(const char *head);
