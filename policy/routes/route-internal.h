/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of a route's members (route.c). Each checks a value, and writes it in the form that
 * holt-gateway reads. */
#pragma once

#include <stdbool.h>

#include "policy/routes/route.h"

typedef struct RouteReader {
        const JsonValue *route;
        JsonWriter *w;
        Error *reterr;
} RouteReader;

/* Each reads the value of a member. value is NULL if the member is missing. path is its place for
 * errors. Returns like route_check(). */
int route_read_upstream(const RouteReader *reader, const JsonValue *value, const char *path);
int route_read_header(const RouteReader *reader, const JsonValue *value, const char *path);
int route_read_query(const RouteReader *reader, const JsonValue *value, const char *path);
int route_read_allow(const RouteReader *reader, const JsonValue *value, const char *path);
int route_read_body(const RouteReader *reader, const JsonValue *value, const char *path);
int route_read_timeout(const RouteReader *reader, const JsonValue *value, const char *path);
int route_read_requests(const RouteReader *reader, const JsonValue *value, const char *path);
int route_read_bytes(const RouteReader *reader, const JsonValue *value, const char *path);
int route_read_concurrent(const RouteReader *reader, const JsonValue *value, const char *path);
int route_read_env(const RouteReader *reader, const JsonValue *value, const char *path);
int route_read_terminate_tls(const RouteReader *reader, const JsonValue *value, const char *path);
int route_read_pass(const RouteReader *reader, const JsonValue *value, const char *path);
int route_read_files(const RouteReader *reader, const JsonValue *value, const char *path);

/* Sets "PATH: TEXT". Returns -EINVAL. */
int route_fail(const RouteReader *reader, const char *path, const char *fmt, ...) _printf_(3, 4);
/* Sets "PATH: expected EXPECTED, not a number". Returns -EINVAL. */
int route_fail_type(const RouteReader *reader, const JsonValue *value, const char *path,
                    const char *expected);

/* Calls read() for each item of an array, or member of an object, with its own path. Refuses
 * another type, and more than ROUTE_ITEMS_MAX items. */
int route_each(const RouteReader *reader, const JsonValue *value, const char *path, JsonType type,
               int (*read)(const RouteReader *reader, const JsonValue *item, const char *path));

/* Returns the first "{" that begins a placeholder, which is one before a letter, or NULL. */
const char *route_brace(const char *text);
/* Whether the first length bytes are a valid name of a variable. */
bool route_env_name_valid(const char *text, size_t length);
/* Whether the text has no control character, except for tabs. */
bool route_text_plain(const char *text);

/* Whether the value of this header or query parameter is a credential. text: the value, which has
 * no placeholder. */
bool route_literal_is_secret(const char *name, bool query, const char *text);
/* Whether the text has a part that looks like a credential: by its first characters, or by its
 * length and variety. Dates, versions, media types and ids do not. */
bool route_literal_looks_secret(const char *name, const char *text);
/* Refuses such a value. verb: "is" or "looks like". Returns -EINVAL or -ENOMEM. */
int route_refuse_literal(const RouteReader *reader, const char *path, const char *verb);
