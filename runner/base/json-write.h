/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON into a growing buffer, without a library and without a tree.
 *
 *         JsonWriter w = { .pretty = true };
 *
 *         json_write_object(&w, NULL);
 *         json_write_string(&w, "cause", "exited");
 *         json_write_array(&w, "command");
 *         json_write_string(&w, NULL, "true");
 *         json_write_end(&w);
 *         json_write_end(&w);
 *         r = json_write_finish(&w);
 *
 * Each call takes a key inside an object, and NULL in an array and at the top. A wrong key and an
 * unbalanced end are programming mistakes (assert). A failure is remembered until
 * json_write_finish(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Twice the depth that base/json.h reads, so that a parsed document fits into a message around it.
 */
enum { JSON_WRITE_DEPTH_MAX = 127 };

/* Zero all members except pretty before the first call. */
typedef struct JsonWriter {
        bool pretty; /* one member per line, indented by two spaces */

        char *data; /* NUL-terminated after the first write; owned by the writer */
        size_t length, size;
        int error;
        unsigned depth;
        bool filled;         /* the innermost object or array is not empty */
        uint64_t objects[2]; /* a bit for each depth: set for an object, clear for an array */
} JsonWriter;

void json_write_clear(JsonWriter *w);

void json_write_object(JsonWriter *w, const char *key);
void json_write_array(JsonWriter *w, const char *key);
void json_write_end(JsonWriter *w);

/* Each byte that is not well-formed UTF-8 becomes U+FFFD. NULL is written as null. */
void json_write_string(JsonWriter *w, const char *key, const char *value);
/* The same with a length. A NUL becomes U+FFFD, since json.h would refuse to read it. Use base64 if
 * the exact bytes matter. */
void json_write_bytes(JsonWriter *w, const char *key, const char *value, size_t length);
void json_write_int(JsonWriter *w, const char *key, int64_t value);
void json_write_uint(JsonWriter *w, const char *key, uint64_t value);
/* Writes null for 0, which means "none" here. */
void json_write_uint_or_null(JsonWriter *w, const char *key, uint64_t value);
/* Writes a finite number with enough digits to read the same number back. */
void json_write_number(JsonWriter *w, const char *key, double value);
void json_write_bool(JsonWriter *w, const char *key, bool value);
void json_write_null(JsonWriter *w, const char *key);
/* Copies a value from another writer, which is not pretty and may be unfinished. A failure of that
 * writer becomes a failure of this one. */
void json_write_value(JsonWriter *w, const char *key, const JsonWriter *value);

/* Ends the document with a newline. Returns 0, or -ENOMEM if memory ran out at any time. w->data
 * and w->length hold the document until json_write_clear(). */
int json_write_finish(JsonWriter *w);
