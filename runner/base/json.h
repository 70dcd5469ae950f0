/* SPDX-License-Identifier: Apache-2.0 */
/* Strict JSON (RFC 8259) from untrusted bytes. The only door to cJSON.
 *
 * As it comes, cJSON 1.7.15 ignores case in look-ups, keeps the first of two equal keys, takes
 * trailing bytes and invalid UTF-8, cuts strings at \u0000, loses digits past 2^53 and nests to
 * 1000. Here a scanner of our own reads the text first and refuses all that is not strictly JSON,
 * with line and column; equal keys are refused with their JSON path; then cJSON makes the tree. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
        JSON_SIZE_MAX = 1 << 20, /* bytes of a document */
        JSON_DEPTH_MAX = 64,     /* objects and arrays in each other */
};

/* Integers past it have no neighbours in a double (2^53 - 1, RFC 7493). */
#define JSON_INTEGER_MAX ((UINT64_C(1) << 53) - 1)

typedef enum JsonType {
        JSON_NULL,
        JSON_BOOL,
        JSON_NUMBER,
        JSON_STRING,
        JSON_ARRAY,
        JSON_OBJECT,
        JSON_TYPE_MAX,
} JsonType;

typedef struct JsonDocument JsonDocument; /* owns all values in it */
typedef struct JsonValue JsonValue;       /* borrowed from its document */

/* name  what the bytes come from, for the error: a file name. Quoted if need be.
 *
 * 0, -EINVAL (not strict JSON: ERROR_POLICY with "name:line:column: what" or "name: $.path: what"),
 * -EFBIG (past JSON_SIZE_MAX), -ENOMEM. */
int json_parse(const char *bytes, size_t length, const char *name, JsonDocument **ret,
               Error *reterr);
/* The same for a document that may have max bytes. */
int json_parse_large(const char *bytes, size_t length, size_t max, const char *name,
                     JsonDocument **ret, Error *reterr);
/* NULL is legal; returns NULL. */
JsonDocument *json_free(JsonDocument *document);

static inline void json_freep(JsonDocument **document) {
        *document = json_free(*document);
}

const JsonValue *json_root(const JsonDocument *document);

JsonType json_type(const JsonValue *value);
/* "an object", "a string": for errors. */
const char *json_type_name(JsonType type);

/* Members of an object or items of an array in the order of the text; NULL at the end, and for the
 * first of anything else. */
const JsonValue *json_first(const JsonValue *value);
const JsonValue *json_next(const JsonValue *value);
/* The key of an object's member; NULL for anything else. */
const char *json_key(const JsonValue *value);
/* The member of exactly that key, or NULL. */
const JsonValue *json_member(const JsonValue *object, const char *key);

/* The text, which has no NUL in it; NULL for anything but a string. */
const char *json_string(const JsonValue *value);
/* 0, or -EINVAL for another type. */
int json_bool(const JsonValue *value, bool *ret);
/* 0, -EINVAL (not a number, or it has a fraction), -ERANGE (negative, or past max or
 * JSON_INTEGER_MAX). */
int json_uint(const JsonValue *value, uint64_t max, uint64_t *ret);
/* 0, -EINVAL (not a number, or it has a fraction), -ERANGE (past JSON_INTEGER_MAX, either side). */
int json_int(const JsonValue *value, int64_t *ret);

/* 0, or -EINVAL for another type. */
int json_number(const JsonValue *value, double *ret);

/* Writes the value as it is into a document. */
struct JsonWriter;
void json_copy(struct JsonWriter *w, const char *key, const JsonValue *value);

/* "$.limits" and "pids" -> "$.limits.pids"; a key that is no plain word -> "$.env[\"a b\"]". Owned
 * by the caller; NULL when memory is out. */
char *json_path_key(const char *path, const char *key);
/* "$.a" and 3 -> "$.a[3]" */
char *json_path_index(const char *path, size_t i);
