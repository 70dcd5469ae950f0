/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the id of a message that is refused as a whole, for example because it is too long. A
 * client that gets a reply without its id waits for a long time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/json-write.h"

/* Writes the id of a message, a string or a number, to ret. Returns false if it is not found. */
bool peek_message_id(const char *line, size_t length, JsonWriter *ret);
