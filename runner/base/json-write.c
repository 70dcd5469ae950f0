/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json-write.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "base/util.h"

void json_write_clear(JsonWriter *w) {
        free(w->data);
        *w = (JsonWriter){ .pretty = w->pretty };
}

/* Makes room for more bytes and a NUL. */
static bool json_reserve(JsonWriter *w, size_t more) {
        size_t size = w->size ? w->size : 512;
        char *data;

        if (w->error < 0)
                return false;
        if (more >= SIZE_MAX / 4 - w->length) {
                w->error = -ENOMEM;
                return false;
        }
        while (size <= w->length + more)
                size *= 2;
        if (size == w->size)
                return true;
        data = realloc(w->data, size);
        if (!data) {
                w->error = -ENOMEM;
                return false;
        }
        w->data = data;
        w->size = size;
        return true;
}

static void json_put(JsonWriter *w, const char *bytes, size_t length) {
        if (!json_reserve(w, length))
                return;
        memcpy(w->data + w->length, bytes, length);
        w->length += length;
        w->data[w->length] = '\0';
}

static void put_text(JsonWriter *w, const char *text) {
        json_put(w, text, strlen(text));
}

static void put_line(JsonWriter *w) {
        if (!w->pretty)
                return;
        json_put(w, "\n", 1);
        for (unsigned i = 0; i < w->depth; i++)
                json_put(w, "  ", 2);
}

/* Formats the escape without snprintf(3), since a reply may contain millions of them. */
static const char *escape_number(unsigned char number, char buf[static 8]) {
        static const char digits[] = "0123456789abcdef";

        memcpy(buf, "\\u00", 4);
        buf[4] = digits[number >> 4];
        buf[5] = digits[number & 15];
        buf[6] = '\0';
        return buf;
}

/* The escape for a byte below 0x80, or NULL if none is needed. DEL and the C0 controls are escaped
 * so that a terminal can show the document. */
static const char *json_escape(unsigned char byte, char buf[static 8]) {
        static const char *const named[] = {
                ['"'] = "\\\"", ['\\'] = "\\\\", ['\b'] = "\\b", ['\f'] = "\\f",
                ['\n'] = "\\n", ['\r'] = "\\r",  ['\t'] = "\\t",
        };

        if (byte < ELEMENTSOF(named) && named[byte])
                return named[byte];
        if (byte >= 0x20 && byte != 0x7f)
                return NULL;
        return escape_number(byte, buf);
}

/* Number of leading bytes that are plain characters and need no escape. Most texts consist of them,
 * so they are copied in one piece. */
static size_t plain_length(const char *value, size_t length) {
        size_t i = 0;

        while (i < length && value[i] >= ' ' && value[i] < 0x7f && value[i] != '"' &&
               value[i] != '\\')
                i++;
        return i;
}

static void put_string(JsonWriter *w, const char *value, size_t length) {
        size_t i = 0;

        json_put(w, "\"", 1);
        while (i < length) {
                size_t plain = plain_length(value + i, length - i), sequence;
                const char *escaped;
                char buf[8];

                if (plain > 0)
                        json_put(w, value + i, plain);
                i += plain;
                if (i == length)
                        break;
                sequence = utf8_sequence(value + i, length - i);
                escaped = sequence == 1 ? json_escape((unsigned char)value[i], buf) : NULL;
                if (sequence == 0 || value[i] == '\0')
                        put_text(w, "\xef\xbf\xbd");
                else if (sequence == 2 && (unsigned char)value[i] == 0xc2 &&
                         (unsigned char)value[i + 1] < 0xa0) {
                        /* C1 controls start escape sequences in some terminals. */
                        put_text(w, escape_number((unsigned char)value[i + 1], buf));
                } else if (escaped)
                        put_text(w, escaped);
                else
                        json_put(w, value + i, sequence);
                i += sequence ? sequence : 1;
        }
        json_put(w, "\"", 1);
}

static bool writer_in_object(const JsonWriter *w) {
        return w->objects[w->depth / 64] >> w->depth % 64 & 1;
}

/* Writes the comma, newline and key in front of a value. */
static void put_head(JsonWriter *w, const char *key) {
        bool object = w->depth > 0 && writer_in_object(w);

        assert(object == (key != NULL));
        assert(w->depth > 0 || !w->filled);
        if (w->filled)
                json_put(w, ",", 1);
        if (w->depth > 0)
                put_line(w);
        if (key) {
                put_string(w, key, strlen(key));
                put_text(w, w->pretty ? ": " : ":");
        }
        w->filled = true;
}

static void writer_open_level(JsonWriter *w, const char *key, bool object) {
        uint64_t *bits;

        put_head(w, key);
        assert(w->depth < JSON_WRITE_DEPTH_MAX);
        w->depth++;
        bits = &w->objects[w->depth / 64];
        *bits &= ~(UINT64_C(1) << w->depth % 64);
        *bits |= (uint64_t)object << w->depth % 64;
        w->filled = false;
        json_put(w, object ? "{" : "[", 1);
}

void json_write_object(JsonWriter *w, const char *key) {
        writer_open_level(w, key, true);
}

void json_write_array(JsonWriter *w, const char *key) {
        writer_open_level(w, key, false);
}

void json_write_end(JsonWriter *w) {
        bool object = writer_in_object(w);

        assert(w->depth > 0);
        w->depth--;
        if (w->filled)
                put_line(w);
        json_put(w, object ? "}" : "]", 1);
        w->filled = true;
}

void json_write_bytes(JsonWriter *w, const char *key, const char *value, size_t length) {
        put_head(w, key);
        put_string(w, value, length);
}

void json_write_string(JsonWriter *w, const char *key, const char *value) {
        if (value)
                json_write_bytes(w, key, value, strlen(value));
        else
                json_write_null(w, key);
}

void json_write_int(JsonWriter *w, const char *key, int64_t value) {
        char buf[24];

        (void)snprintf(buf, sizeof(buf), "%" PRId64, value);
        put_head(w, key);
        put_text(w, buf);
}

void json_write_uint(JsonWriter *w, const char *key, uint64_t value) {
        char buf[24];

        (void)snprintf(buf, sizeof(buf), "%" PRIu64, value);
        put_head(w, key);
        put_text(w, buf);
}

void json_write_number(JsonWriter *w, const char *key, double value) {
        char buf[32];

        assert(isfinite(value));
        for (int digits = 15; digits <= 17; digits++) {
                (void)snprintf(buf, sizeof(buf), "%.*g", digits, value);
                if (strtod(buf, NULL) == value)
                        break;
        }
        put_head(w, key);
        put_text(w, value == 0 && signbit(value) ? "-0.0"
                                                 : buf); /* readers take "-0" for an integer */
}

void json_write_bool(JsonWriter *w, const char *key, bool value) {
        put_head(w, key);
        put_text(w, value ? "true" : "false");
}

void json_write_null(JsonWriter *w, const char *key) {
        put_head(w, key);
        put_text(w, "null");
}

void json_write_uint_or_null(JsonWriter *w, const char *key, uint64_t value) {
        if (value)
                json_write_uint(w, key, value);
        else
                json_write_null(w, key);
}

void json_write_value(JsonWriter *w, const char *key, const JsonWriter *value) {
        size_t length = value->length;

        assert(value->depth == 0 && value->filled && !value->pretty);
        if (value->error < 0)
                w->error = value->error;
        put_head(w, key);
        if (length > 0 && value->data[length - 1] == '\n')
                length--;
        json_put(w, value->data, length);
}

int json_write_finish(JsonWriter *w) {
        assert(w->depth == 0 && w->filled);
        json_put(w, "\n", 1);
        return w->error;
}
