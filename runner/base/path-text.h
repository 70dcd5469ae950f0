/* SPDX-License-Identifier: Apache-2.0 */
/* Paths in JSON. A path may contain any byte except NUL, whereas a JSON string is UTF-8.
 *
 * A path that is UTF-8 is its own text. Any other path is written as U+0001 and the path's base64.
 * A path that begins with U+0001 is written that way too, so that every path has one text. */
#pragma once

#include <stdbool.h>

#include "base/json-write.h"

/* Whether the path is its own text. */
bool path_text_is_plain(const char *path);

/* The text of a path. Owned by the caller; NULL if memory is out. */
char *path_text(const char *path);

/* Decodes the text of a path into *ret, which the caller owns. Returns 0, -EINVAL if the base64 is
 * malformed or contains a NUL, or -ENOMEM. */
int path_from_text(const char *text, char **ret);

/* Writes the text of a path as a member. */
void json_write_path(JsonWriter *w, const char *key, const char *path);
/* Writes a name as one or two members. `name` is for people, with U+FFFD in place of each byte that
 * is not UTF-8. `raw` is the name as the text of a path, and is written only if it differs from
 * `name`. */
void json_write_name(JsonWriter *w, const char *key, const char *name);
