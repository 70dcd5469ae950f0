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
 * In an object each call takes a key, in an array and at the top NULL; the wrong one, an end too
 * many or too few is a programmer's mistake (assert). A failure is kept until json_write_finish().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Twice what base/json.h reads, so that what was read fits into what is written around it. */
enum { JSON_WRITE_DEPTH_MAX = 127 };

/* Zeroed but for pretty is ready to be written to. */
typedef struct JsonWriter {
        bool pretty; /* one member a line, indented by two spaces */

        char *data; /* NUL-terminated once anything was written; owned by the writer */
        size_t length, size;
        int error;
        unsigned depth;
        bool filled;         /* the innermost object or array has something in it */
        uint64_t objects[2]; /* a bit for each depth: an object, not an array */
} JsonWriter;

void json_write_clear(JsonWriter *w);

void json_write_object(JsonWriter *w, const char *key);
void json_write_array(JsonWriter *w, const char *key);
void json_write_end(JsonWriter *w);

/* Whatever is not well-formed UTF-8 becomes U+FFFD, one for each byte. NULL is written as null. */
void json_write_string(JsonWriter *w, const char *key, const char *value);
/* The same with a length. A NUL in it becomes U+FFFD: a string that has one is not read again
 * (json.h). Who needs the bytes asks for base64. */
void json_write_bytes(JsonWriter *w, const char *key, const char *value, size_t length);
void json_write_int(JsonWriter *w, const char *key, int64_t value);
void json_write_uint(JsonWriter *w, const char *key, uint64_t value);
/* A finite number, with as many digits as it takes to read the same one again. */
void json_write_number(JsonWriter *w, const char *key, double value);
void json_write_bool(JsonWriter *w, const char *key, bool value);
void json_write_null(JsonWriter *w, const char *key);
/* A value that another writer has made, not pretty, finished or not. Its failure is this one's. */
void json_write_value(JsonWriter *w, const char *key, const JsonWriter *value);

/* Ends the document with a newline. 0, or -ENOMEM when memory was out at any time. w->data and
 * w->length have the document until json_write_clear(). */
int json_write_finish(JsonWriter *w);
