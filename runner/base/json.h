/* SPDX-License-Identifier: Apache-2.0 */
/* Strict JSON (RFC 8259) from untrusted bytes. Only this module calls cJSON.
 *
 * By itself, cJSON 1.7.15 accepts much that strict JSON forbids. It ignores case in look-ups, keeps
 * the first of two equal keys, and takes trailing bytes and invalid UTF-8. It cuts strings at
 * \u0000, loses digits past 2^53, and nests to 1000. So holt's own scanner reads the text first and
 * refuses everything that is not strictly JSON, with line and column. cJSON then builds the tree,
 * and equal keys are refused with their JSON path. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
        JSON_SIZE_MAX = 1 << 20, /* maximum bytes of a document */
        JSON_DEPTH_MAX = 64,     /* maximum nesting of objects and arrays */
};

/* The largest integer whose neighbours a double can represent (2^53 - 1, RFC 7493). */
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

typedef struct JsonDocument JsonDocument; /* owns all its values */
typedef struct JsonValue JsonValue;       /* borrowed from its document */

/* name  the source of the bytes for errors, such as a file name. Quoted if necessary.
 *
 * Returns 0, -EINVAL (not strict JSON: ERROR_POLICY with "name:line:column: what" or "name: $.path:
 * what"), -EFBIG (larger than JSON_SIZE_MAX), or -ENOMEM. */
int json_parse(const char *bytes, size_t length, const char *name, JsonDocument **ret,
               Error *reterr);
/* The same for a document of up to max bytes. */
int json_parse_large(const char *bytes, size_t length, size_t max, const char *name,
                     JsonDocument **ret, Error *reterr);
/* Accepts NULL. Returns NULL. */
JsonDocument *json_free(JsonDocument *document);

static inline void json_freep(JsonDocument **document) {
        *document = json_free(*document);
}

const JsonValue *json_root(const JsonDocument *document);

JsonType json_type(const JsonValue *value);
/* "an object", "a string" and so on, for errors. */
const char *json_type_name(JsonType type);

/* A missing value is NULL. json_first(), json_member() and the functions that read a value accept
 * NULL like a value of another type. So calls can be nested. */

/* The first member of an object, or item of an array, in the order of the text. NULL at the end,
 * and for any other type. */
const JsonValue *json_first(const JsonValue *value);
const JsonValue *json_next(const JsonValue *value);
/* The key of an object's member; NULL for any other value. */
const char *json_key(const JsonValue *value);
/* The member with exactly that key, or NULL. */
const JsonValue *json_member(const JsonValue *object, const char *key);

/* The text of a string, which contains no NUL; NULL for any other type. */
const char *json_string(const JsonValue *value);
/* Returns 0, or -EINVAL for another type. */
int json_bool(const JsonValue *value, bool *ret);
/* Returns 0, -EINVAL (not a number, or it has a fraction), or -ERANGE (negative, or above max or
 * JSON_INTEGER_MAX). */
int json_uint(const JsonValue *value, uint64_t max, uint64_t *ret);
/* Returns 0, -EINVAL (not a number, or it has a fraction), or -ERANGE (beyond JSON_INTEGER_MAX on
 * either side). */
int json_int(const JsonValue *value, int64_t *ret);

/* Returns 0, or -EINVAL for another type. */
int json_number(const JsonValue *value, double *ret);

/* Read a member of an object. If it is missing or has another type, they return NULL, "" and 0. */
const char *json_member_string(const JsonValue *object, const char *key);
const char *json_member_text(const JsonValue *object, const char *key);
uint64_t json_member_uint(const JsonValue *object, const char *key);

/* Writes the value unchanged into a document. */
struct JsonWriter;
void json_copy(struct JsonWriter *w, const char *key, const JsonValue *value);

/* Appends a key to a path: "$.limits" and "pids" give "$.limits.pids"; a key with other characters
 * gives "$.env[\"a b\"]". Owned by the caller; NULL if memory is out. */
char *json_path_key(const char *path, const char *key);
/* Appends an index to a path: "$.a" and 3 give "$.a[3]". */
char *json_path_index(const char *path, size_t i);
