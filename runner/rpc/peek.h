/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the id and the method of a line that cannot be parsed. */
#pragma once

#include "base/json.h"

/* head  the first bytes of the line, a string.
 *
 * Returns an object with "id" and "method". The search ends at the first array, object or
 * incomplete value, because programs usually write these two members first. NULL if neither is
 * found, or memory is out. Freed by json_free(). */
JsonDocument *rpc_peek(const char *head);
