/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes base/json-schema.c. The first line is a client's schema, the rest an attacker's value. A
 * refusal must have a text that fits a reply. A schema that is wrapped in others that add nothing
 * must have the same result. Each check, also of the schema itself, must end. */
#include <errno.h>
#include <string.h>

#include "base/json-schema.h"
#include "base/json-write.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "tests/fuzz/harness.h"

static void check_text(const char *text) {
        size_t length = strlen(text);

        REQUIRE(length > 0);
        while (length > 0) {
                const size_t sequence = utf8_sequence(text, length);

                REQUIRE(sequence > 0);
                text += sequence;
                length -= sequence;
        }
}

static int check(const JsonValue *schema, const JsonValue *value) {
        Error error = { 0 };
        int r = json_schema_check(schema, value, &error);

        REQUIRE(r == 0 || r == -EINVAL || r == -E2BIG);
        if (r < 0)
                check_text(error.text);
        if (r == -EINVAL)
                REQUIRE(error.kind == ERROR_USAGE && error.text[0] == '$');
        return r;
}

/* A check of a value must not rely on this result. */
static void verify(const JsonValue *schema) {
        Error error = { 0 };
        int r = json_schema_verify(schema, "s", &error);

        REQUIRE(r == 0 || r == -EINVAL || r == -E2BIG);
        if (r < 0)
                check_text(error.text);
        if (r == -EINVAL)
                REQUIRE(error.kind == ERROR_USAGE && strncmp(error.text, "s: $", 4) == 0);
}

/* Checks {"anyOf": [schema]}, also with {}, which accepts everything, and {"items": schema} for
 * [value]. */
static void check_wrapped(const JsonValue *schema, const JsonValue *value, int r,
                          const char *before, const char *after, bool in_array) {
        JsonWriter w = { 0 }, v = { 0 };
        JsonDocument *s = NULL, *a = NULL;

        json_copy(&w, NULL, schema);
        json_copy(&v, NULL, value);
        REQUIRE(json_write_finish(&w) == 0 && json_write_finish(&v) == 0);
        {
                _cleanup_free_ char *text = str_format("%s%.*s%s", before, (int)w.length, w.data,
                                                       after);
                _cleanup_free_ char *array = str_format(in_array ? "[%.*s]" : "%.*s", (int)v.length,
                                                        v.data);
                Error error;

                REQUIRE(text && array);
                /* One more level may exceed the limit. */
                if (json_parse(text, strlen(text), "s", &s, &error) == 0 &&
                    json_parse(array, strlen(array), "v", &a, &error) == 0) {
                        const int wrapped = check(json_root(s), json_root(a));

                        REQUIRE(wrapped == r || wrapped == -E2BIG);
                }
        }
        json_free(s);
        json_free(a);
        json_write_clear(&w);
        json_write_clear(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const uint8_t *newline = memchr(data, '\n', size);
        const size_t length = newline ? (size_t)(newline - data) : 0;
        JsonDocument *schema = NULL, *value = NULL;
        Error error;
        int r;

        if (newline && json_parse((const char *)data, length, "s", &schema, &error) == 0 &&
            json_parse((const char *)newline + 1, size - length - 1, "v", &value, &error) == 0) {
                /* A $ref would lead elsewhere in another schema. */
                const bool apart = !memmem(data, length, "ref", 3) &&
                                   !memmem(data, length, "\\u", 2);

                verify(json_root(schema));
                r = check(json_root(schema), json_root(value));
                REQUIRE(check(json_root(schema), json_root(value)) == r);
                if (apart && r != -E2BIG) {
                        check_wrapped(json_root(schema), json_root(value), r, "{\"anyOf\":[", "]}",
                                      false);
                        check_wrapped(json_root(schema), json_root(value), 0, "{\"anyOf\":[",
                                      ",{}]}", false);
                }
                if (apart && r != -E2BIG && json_type(json_root(schema)) == JSON_OBJECT)
                        check_wrapped(json_root(schema), json_root(value), r, "{\"items\":", "}",
                                      true);
        }
        json_free(schema);
        json_free(value);
        return 0;
}
