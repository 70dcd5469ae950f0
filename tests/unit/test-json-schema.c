/* SPDX-License-Identifier: Apache-2.0 */
/* base/json-schema.c: what a schema takes, and what is said of what it does not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json-schema.h"
#include "base/strings.h"

static JsonDocument *parse(const char *text) {
        JsonDocument *document = NULL;
        Error error;

        if (json_parse(text, strlen(text), "t", &document, &error) < 0)
                fail_msg("%s: %s", text, error.text);
        return document;
}

/* message NULL: it is taken. */
static void check(const char *schema, const char *value, const char *message) {
        JsonDocument *s = parse(schema), *v = parse(value);
        Error error = { .text = "nothing" };
        int r = json_schema_check(json_root(s), json_root(v), &error);

        if (r < 0 && !message)
                fail_msg("%s for %s: %s", schema, value, error.text);
        if (message) {
                assert_int_equal(r, -EINVAL);
                assert_int_equal(error.kind, ERROR_USAGE);
                assert_string_equal(error.text, message);
        }
        json_free(s);
        json_free(v);
}

static void test_types(void **state) {
        static const char *const names[] = { "string", "integer", "number", "boolean",
                                             "object", "array",   "null" };
        static const struct {
                const char *value, *types; /* a bit each, as above */
        } cases[] = {
                { "\"a\"", "1000000" }, { "1", "0110000" },     { "-1.0", "0110000" },
                { "1e2", "0110000" },   { "1e300", "0110000" }, { "1.5", "0010000" },
                { "true", "0001000" },  { "false", "0001000" }, { "{}", "0000100" },
                { "[]", "0000010" },    { "null", "0000001" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                for (size_t t = 0; t < ELEMENTSOF(names); t++) {
                        _cleanup_free_ char *schema = str_format("{\"type\":\"%s\"}", names[t]);
                        JsonDocument *s = parse(schema), *v = parse(cases[i].value);
                        int r = json_schema_check(json_root(s), json_root(v), NULL);

                        assert_int_equal(r, cases[i].types[t] == '1' ? 0 : -EINVAL);
                        json_free(s);
                        json_free(v);
                }
        check("{\"type\":[\"string\",\"null\"]}", "null", NULL);
        check("{\"type\":[\"string\",\"null\"]}", "1", "$: must be a string or null");
        check("{\"type\":[\"string\",\"array\",\"null\"]}", "1",
              "$: must be a string, an array or null");
        check("{\"type\":\"boolean\"}", "1", "$: must be true or false");
}

static void test_objects(void **state) {
        static const char schema[] =
                "{\"type\":\"object\",\"properties\":{\"limit\":{\"type\":\"integer\"},"
                "\"of\":{\"type\":\"array\",\"items\":{\"properties\":{\"a "
                "b\":{\"type\":\"null\"}}}}},"
                "\"required\":[\"limit\"],\"additionalProperties\":false}";

        (void)state;
        check(schema, "{\"limit\":1}", NULL);
        check(schema, "{\"limit\":\"1\"}", "$.limit: must be an integer");
        check(schema, "{\"limit\":1.5}", "$.limit: must be an integer");
        check(schema, "{}", "$.limit: is missing");
        check(schema, "{\"limit\":1,\"Limit\":1}", "$.Limit: is not known");
        check(schema, "{\"limit\":1,\"of\":[{},{\"a b\":null},{\"a b\":1}]}",
              "$.of[2][\"a b\"]: must be null");
        check("{\"additionalProperties\":{\"type\":\"string\"}}", "{\"a\":\"\",\"b\":1}",
              "$.b: must be a string");
        check("{\"additionalProperties\":true}", "{\"a\":1}", NULL);
        /* They say nothing of what is no object or array. */
        check("{\"required\":[\"a\"],\"properties\":{},\"additionalProperties\":false}", "[1]",
              NULL);
        check("{\"items\":{\"type\":\"string\"}}", "{\"a\":1}", NULL);
}

static void test_enums(void **state) {
        (void)state;
        check("{\"enum\":[\"red\",2,null]}", "2.0", NULL);
        check("{\"enum\":[\"red\",2,null]}", "\"blue\"", "$: must be \"red\", 2 or null");
        check("{\"enum\":[{\"a\":[1,{}]}]}", "{\"a\":[1,{}]}", NULL);
        check("{\"enum\":[{\"a\":1,\"b\":2}]}", "{\"b\":2,\"a\":1}", NULL);
        check("{\"enum\":[[1,2]]}", "[2,1]", "$: must be [1,2]");
        check("{\"enum\":[true]}", "1", "$: must be true");
        check("{\"const\":\"a\"}", "\"a\"", NULL);
        check("{\"const\":\"a\"}", "\"b\"", "$: must be \"a\"");
}

static void test_any_of(void **state) {
        static const char simple[] = "{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}";
        static const char rich[] = "{\"anyOf\":[{\"type\":\"integer\"},{\"properties\":{\"a\":{"
                                   "\"type\":\"null\"}},\"type\":\"object\"},{\"enum\":[1.5]}]}";

        (void)state;
        check(simple, "1", NULL);
        check(simple, "\"a\"", "$: must be an integer or null");
        check(rich, "{\"a\":null}", NULL);
        check(rich, "{\"a\":1}", "$: is none of what anyOf has");
        /* What is beside it counts as well. */
        check("{\"anyOf\":[{}],\"type\":\"string\"}", "1", "$: must be a string");
}

/* What is no keyword, or not used as one, refuses nothing. */
static void test_odd_schemas(void **state) {
        static const char *const schemas[] = {
                "{}",
                "{\"title\":\"x\",\"format\":\"uri\",\"minimum\":5}",
                "{\"type\":5}",
                "{\"type\":\"any\"}",
                "{\"type\":[]}",
                "{\"type\":[5]}",
                "{\"required\":\"a\"}",
                "{\"required\":[1]}",
                "{\"properties\":[]}",
                "{\"properties\":{\"a\":true}}",
                "{\"items\":[{\"type\":\"null\"}]}",
                "{\"enum\":1}",
                "{\"anyOf\":{}}",
                "{\"anyOf\":[]}",
                "{\"anyOf\":[1]}",
                "{\"additionalProperties\":1}",
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(schemas); i++) {
                check(schemas[i], "{\"a\":[1]}", NULL);
                check(schemas[i], "[1]", NULL);
        }
}

/* 100,000 items, each of which 2,000 values are compared with. */
static void test_too_much(void **state) {
        _cleanup_free_ char *schema = malloc(20000), *value = malloc(600000);
        JsonDocument *s, *v;
        Error error;
        char *at;

        (void)state;
        assert_true(schema && value);
        at = stpcpy(schema, "{\"items\":{\"enum\":[");
        for (int i = 0; i < 2000; i++)
                at += sprintf(at, "%d,", 1000 + i);
        (void)strcpy(at - 1, "]}}");
        at = stpcpy(value, "[");
        for (int i = 0; i < 100000; i++)
                at = stpcpy(at, "2998,");
        (void)strcpy(at - 1, "]");
        s = parse(schema);
        v = parse(value);
        assert_int_equal(json_schema_check(json_root(s), json_root(v), &error), -E2BIG);
        assert_int_equal(error.kind, ERROR_LIMIT);
        json_free(s);
        json_free(v);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_types),       cmocka_unit_test(test_objects),
                cmocka_unit_test(test_enums),       cmocka_unit_test(test_any_of),
                cmocka_unit_test(test_odd_schemas), cmocka_unit_test(test_too_much),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
