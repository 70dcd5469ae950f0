/* SPDX-License-Identifier: Apache-2.0 */
/* Tests base/json-schema.c: accepted values, and the errors for refused ones. */
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
#include "base/utf8.h"

static JsonDocument *parse(const char *text) {
        JsonDocument *document = NULL;
        Error error;

        if (json_parse(text, strlen(text), "t", &document, &error) < 0)
                fail_msg("%s: %s", text, error.text);
        return document;
}

/* message NULL: the schema accepts the value. */
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
                const char *value, *types; /* one bit per type, as above */
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
        /* These keywords ignore a value that is no object or array. */
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
        check("{\"enum\":[]}", "1", "$: is not allowed");
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
        check("{\"anyOf\":[{\"type\":\"string\",\"title\":\"T\"},{\"type\":\"null\"}]}", "1",
              "$: must be a string or null");
        check("{\"anyOf\":[{\"type\":\"string\",\"minLength\":3},{\"type\":\"null\"}]}", "\"a\"",
              "$: must have at least 3 characters");
        check(rich, "{\"a\":null}", NULL);
        check(rich, "{\"a\":1}", "$: matches no schema of anyOf");
        /* Keywords beside anyOf count too. */
        check("{\"anyOf\":[{}],\"type\":\"string\"}", "1", "$: must be a string");
}

static void test_other_combinations(void **state) {
        static const char one[] = "{\"oneOf\":[{\"type\":\"integer\"},{\"minimum\":10}]}";

        (void)state;
        check(one, "5", NULL);
        check(one, "10.5", NULL);
        check(one, "1.5", "$: matches no schema of oneOf");
        check(one, "10", "$: matches more than one schema of oneOf");
        check("{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}", "\"a\"",
              "$: must be an integer or null");
        check("{\"allOf\":[{\"minimum\":1},{\"maximum\":3}]}", "2", NULL);
        check("{\"allOf\":[{\"minimum\":1},{\"maximum\":3}]}", "4", "$: must be at most 3");
        check("{\"not\":{\"type\":\"null\"}}", "1", NULL);
        check("{\"not\":{\"type\":\"null\"}}", "null", "$: matches the schema in \"not\"");
        check("{\"properties\":{\"a\":false}}", "{\"b\":1}", NULL);
        check("{\"properties\":{\"a\":false}}", "{\"a\":1}", "$.a: is not allowed");
}

static void test_one_of_two_ways(void **state) {
        static const char *const schema =
                "{\"if\":{\"required\":[\"by\"],\"properties\":{\"by\":{\"const\":\"mail\"}}},"
                "\"then\":{\"required\":[\"to\"]},\"else\":{\"maxProperties\":1}}";

        (void)state;
        check(schema, "{\"by\":\"mail\",\"to\":1,\"cc\":2}", NULL);
        check(schema, "{\"by\":\"mail\"}", "$.to: is missing");
        check(schema, "{\"by\":\"post\"}", NULL);
        check(schema, "{\"by\":\"post\",\"to\":1}", "$: must have at most 1 member");
        check("{\"if\":true,\"else\":false}", "1", NULL);
        check("{\"if\":false,\"then\":false}", "1", NULL);
        check("{\"then\":false,\"else\":false}", "1", NULL);
}

/* For an optional value, the error comes from the only schema that can be meant. */
static void test_errors_come_from_the_schema_that_is_meant(void **state) {
        static const char optional[] =
                "{\"anyOf\":[{\"$ref\":\"#/$defs/a\"},{\"type\":\"null\"}],\"$defs\":{\"a\":"
                "{\"type\":\"object\",\"properties\":{\"n\":{\"oneOf\":[{\"type\":\"integer\","
                "\"minimum\":0},"
                "{\"type\":[\"string\",\"null\"]}]},\"in\":{\"anyOf\":[{\"$ref\":\"#/$defs/"
                "a\"},{\"type\":\"null\"}]}}}}}";

        (void)state;
        check(optional, "{\"n\":1,\"in\":{\"n\":\"a\",\"in\":null}}", NULL);
        check(optional, "{\"n\":-1}", "$.n: must be at least 0");
        check(optional, "{\"in\":{\"in\":{\"n\":-1}}}", "$.in.in.n: must be at least 0");
        check(optional, "{\"n\":[]}", "$.n: matches no schema of oneOf");
        check(optional, "[]", "$: matches no schema of anyOf");
        check("{\"anyOf\":[{\"type\":\"string\",\"maxLength\":1},{\"type\":\"string\","
              "\"minLength\":"
              "3}]}",
              "\"ab\"", "$: matches no schema of anyOf");
}

static void test_numbers(void **state) {
        (void)state;
        check("{\"minimum\":0}", "0", NULL);
        check("{\"minimum\":0}", "-0.5", "$: must be at least 0");
        check("{\"maximum\":1.5}", "1.5", NULL);
        check("{\"maximum\":1.5}", "2", "$: must be at most 1.5");
        check("{\"exclusiveMinimum\":0}", "0.1", NULL);
        check("{\"exclusiveMinimum\":0}", "0", "$: must be more than 0");
        check("{\"exclusiveMaximum\":3}", "3", "$: must be less than 3");
        /* The spelling of draft 4. */
        check("{\"minimum\":3,\"exclusiveMinimum\":true}", "3", "$: must be more than 3");
        check("{\"minimum\":3,\"exclusiveMinimum\":false}", "3", NULL);
        check("{\"maximum\":3,\"exclusiveMaximum\":true}", "3", "$: must be less than 3");
        check("{\"exclusiveMaximum\":true}", "3", NULL);
        check("{\"multipleOf\":5}", "-15", NULL);
        check("{\"multipleOf\":5}", "-14", "$: must be a multiple of 5");
        check("{\"multipleOf\":0.1}", "0.3", NULL);
        check("{\"multipleOf\":0.1}", "0.35", "$: must be a multiple of 0.1");
        check("{\"multipleOf\":0.01}", "1234567.89", NULL);
        check("{\"multipleOf\":0.1}", "100000000.1", NULL);
        check("{\"multipleOf\":0.1}", "-100000000.15", "$: must be a multiple of 0.1");
        check("{\"multipleOf\":1e-8}", "12391239123", NULL);
        check("{\"multipleOf\":0.5}", "1e308", NULL);
        check("{\"multipleOf\":1}", "1e-10", "$: must be a multiple of 1");
        check("{\"multipleOf\":1}", "0.9999999999", "$: must be a multiple of 1");
        check("{\"multipleOf\":1e300}", "1", "$: must be a multiple of 1e+300");
        check("{\"multipleOf\":1e300}", "0", NULL);
        check("{\"multipleOf\":3}", "9007199254740990", NULL);
        check("{\"multipleOf\":2}", "-9007199254740991", "$: must be a multiple of 2");
}

static void test_sizes(void **state) {
        (void)state;
        check("{\"minLength\":2}", "\"ab\"", NULL);
        check("{\"minLength\":2}", "\"\u00e4\"", "$: must have at least 2 characters");
        check("{\"maxLength\":1}", "\"\u00e4\"", NULL);
        check("{\"maxLength\":1}", "\"ab\"", "$: must have at most 1 character");
        check("{\"minItems\":1}", "[]", "$: must have at least 1 item");
        check("{\"maxItems\":2}", "[1,2,3]", "$: must have at most 2 items");
        check("{\"minProperties\":1}", "{}", "$: must have at least 1 member");
        check("{\"maxProperties\":0}", "{\"a\":1}", "$: must have at most 0 members");
        check("{\"uniqueItems\":true}", "[1,\"1\",{\"a\":1},{\"a\":2}]", NULL);
        check("{\"uniqueItems\":true}", "[1,{\"a\":1},{\"a\":1}]", "$[2]: is a duplicate");
        check("{\"uniqueItems\":false}", "[1,1]", NULL);
}

static void test_tuples(void **state) {
        static const char tuple[] = "{\"prefixItems\":[{\"type\":\"string\"},{}],"
                                    "\"items\":{\"type\":\"null\"}}";

        (void)state;
        check(tuple, "[\"a\",1,null]", NULL);
        check(tuple, "[1]", "$[0]: must be a string");
        check(tuple, "[\"a\",1,null,2]", "$[3]: must be null");
        check("{\"prefixItems\":[{}],\"items\":false}", "[1,2]", "$[1]: is not allowed");
        check("{\"items\":[{},{\"type\":\"null\"}]}", "[1,2]", "$[1]: must be null");
}

static void test_references(void **state) {
        static const char tree[] =
                "{\"$ref\":\"#/$defs/"
                "node\",\"$defs\":{\"node\":{\"type\":\"object\",\"properties\":{"
                "\"left\":{\"$ref\":\"#/$defs/node\"},\"name\":{\"$ref\":\"#/$defs/a~1b\"}}},"
                "\"a/b\":{\"type\":\"string\"}}}";

        (void)state;
        check(tree, "{\"left\":{\"left\":{\"name\":\"x\"}}}", NULL);
        check(tree, "{\"left\":{\"left\":{\"name\":1}}}", "$.left.left.name: must be a string");
        check("{\"anyOf\":[{\"type\":\"null\"},{\"items\":{\"$ref\":\"#\"},\"type\":\"array\"}]}",
              "[[],null]", NULL);
        check("{\"items\":{\"$ref\":\"#/items/anyOf/1\"},\"x\":1}", "[1]", NULL);
        check("{\"allOf\":[{},{\"type\":\"null\"}],\"$ref\":\"#/allOf/1\"}", "null", NULL);
        check("{\"properties\":{\"a\":{\"$ref\":\"#/oneOf/1\"}},\"oneOf\":[{},false]}", "{\"a\":1}",
              "$.a: is not allowed");
}

/* A URI's fragment may contain %XX; many tools write unusual names that way. */
static void test_names_in_references(void **state) {
        static const struct {
                const char *name, *reference;
        } cases[] = {
                { "a b", "a%20b" },         { "List<a>", "List%3Ca%3e" },
                { "List<a>", "List<a>" },   { "\u00e4", "%C3%A4" },
                { "100%", "100%25" },       { "%2", "%2" },
                { "%zz", "%zz" },           { "%00", "%00" },
                { "a/b", "a~1b" },          { "~1", "%7E01" },
                { "~2~", "~2~" },           { "", "" },
                { "12345678", "12345678" },
        };
        _cleanup_free_ char *name = malloc(1001);

        (void)state;
        assert_non_null(name);
        memset(name, 'x', 1000);
        name[1000] = '\0';
        for (size_t i = 0; i <= ELEMENTSOF(cases); i++) {
                const bool of_table = i < ELEMENTSOF(cases);
                _cleanup_free_ char *schema = NULL;

                schema = str_format("{\"items\":{\"$ref\":\"#/$defs/%s\"},\"$defs\":{\"no\":{},"
                                    "\"%s\":{\"type\":\"null\"}}}",
                                    of_table ? cases[i].reference : name,
                                    of_table ? cases[i].name : name);
                check(schema, "[null]", NULL);
                check(schema, "[1]", "$[0]: must be null");
        }
}

/* A reference to itself, or a circle of references, ends. */
static void test_circles(void **state) {
        static const char *const schemas[] = {
                "{\"$ref\":\"#\"}",
                "{\"allOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}]}",
                "{\"not\":{\"$ref\":\"#\"}}",
                "{\"if\":{\"$ref\":\"#\"}}",
                "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"oneOf\":[{\"$ref\":\"#\"}]}}}",
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(schemas); i++) {
                JsonDocument *s = parse(schemas[i]), *v = parse("1");
                Error error;

                assert_int_equal(json_schema_check(json_root(s), json_root(v), &error), -E2BIG);
                assert_int_equal(error.kind, ERROR_LIMIT);
                json_free(s);
                json_free(v);
        }
}

static void test_verify(void **state) {
        static const struct {
                const char *schema, *message; /* NULL: the schema makes sense */
        } cases[] = {
                { "{}", NULL },
                { "{\"properties\":{\"type\":{\"type\":\"string\"}},\"required\":[\"type\"]}",
                  NULL },
                { "{\"items\":[{},true],\"exclusiveMinimum\":true,\"multipleOf\":0.5}", NULL },
                { "{\"$defs\":{\"a\":{\"$ref\":\"#\"}},\"x-own\":{\"type\":5}}", NULL },
                { "{\"default\":5,\"examples\":[1],\"const\":null,\"enum\":[]}", NULL },
                { "{\"type\":\"strnig\"}", "$.type: no type is called \"strnig\"" },
                { "{\"type\":5}", "$.type: must be the name of a type, or an array of them" },
                { "{\"type\":[]}", "$.type: must be the name of a type, or an array of them" },
                { "{\"type\":[\"null\",\"x\"]}", "$.type[1]: no type is called \"x\"" },
                { "{\"properties\":[]}", "$.properties: must be an object of schemas" },
                { "{\"properties\":{\"a b\":5}}",
                  "$.properties[\"a b\"]: must be a schema: an object, true or false" },
                { "{\"required\":\"a\"}", "$.required: must be an array of strings" },
                { "{\"required\":[5]}", "$.required[0]: must be a string" },
                { "{\"items\":5}", "$.items: must be a schema" },
                { "{\"items\":{\"anyOf\":{}}}", "$.items.anyOf: must be an array of schemas" },
                { "{\"minLength\":-1}", "$.minLength: must be a whole number of at least 0" },
                { "{\"minimum\":true}", "$.minimum: must be a number" },
                { "{\"multipleOf\":0}", "$.multipleOf: must be a number above 0" },
                { "{\"uniqueItems\":1}", "$.uniqueItems: must be true or false" },
                { "{\"enum\":5}", "$.enum: must be an array" },
                { "{\"description\":5}", "$.description: must be a string" },
                { "{\"$ref\":5}", "$.$ref: must be a string" },
                { "{\"not\":{\"$ref\":\"#/$defs/a\"}}", "$.not.$ref: refers to no schema" },
                { "{\"$ref\":\"#/type\",\"type\":\"null\"}", "$.$ref: refers to no schema" },
                { "{\"$ref\":\"https://example.org/a.json\"}", "$.$ref: refers to no schema" },
                { "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a b\":{}}}",
                  "$.$ref: refers to no schema" },
                { "{\"$ref\":\"#/$defs/a%20\",\"$defs\":{\"a\":{}}}",
                  "$.$ref: refers to no schema" },
                { "{\"$ref\":\"#/$defs/a%00\",\"$defs\":{\"a\":{}}}",
                  "$.$ref: refers to no schema" },
                { "{\"$ref\":\"#x\"}", "$.$ref: refers to no schema" },
                { "{\"$ref\":\"#/anyOf/1%30\",\"anyOf\":[{}]}", "$.$ref: refers to no schema" },
                { "{\"$ref\":\"#/anyOf/-0\",\"anyOf\":[{}]}", "$.$ref: refers to no schema" },
                { "{\"$ref\":\"#/anyOf/00\",\"anyOf\":[{}]}", "$.$ref: refers to no schema" },
                { "{\"$ref\":\"#/anyOf/\",\"anyOf\":[{}]}", "$.$ref: refers to no schema" },
                { "{\"$ref\":\"#/anyOf/99999999999999999999\",\"anyOf\":[{}]}",
                  "$.$ref: refers to no schema" },
                { "{\"$ref\":\"#/%61nyOf/%30\",\"anyOf\":[{}]}", NULL },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                JsonDocument *s = parse(cases[i].schema);
                Error error = { .text = "nothing" };
                int r = json_schema_verify(json_root(s), "input_schema", &error);

                if (!cases[i].message) {
                        if (r < 0)
                                fail_msg("%s: %s", cases[i].schema, error.text);
                } else {
                        _cleanup_free_ char *whole = str_format("input_schema: %s",
                                                                cases[i].message);

                        assert_int_equal(r, -EINVAL);
                        assert_int_equal(error.kind, ERROR_USAGE);
                        assert_string_equal(error.text, whole);
                }
                json_free(s);
        }
}

static void check_end(const char *schema, const char *value, const char *end) {
        JsonDocument *s = parse(schema), *v = parse(value);
        Error error;

        assert_int_equal(json_schema_check(json_root(s), json_root(v), &error), -EINVAL);
        assert_true(utf8_valid(error.text));
        assert_true(strlen(error.text) > strlen(end));
        assert_string_equal(error.text + strlen(error.text) - strlen(end), end);
        json_free(s);
        json_free(v);
}

/* A list that does not fit into an error is cut between characters. */
static void test_long_choices(void **state) {
        char schema[2000], *at;

        (void)state;
        for (int shift = 0; shift < 4; shift++) {
                at = schema + sprintf(schema, "{\"enum\":[\"%.*s\"", shift, "xxxx");
                for (int i = 0; i < 40; i++)
                        at += sprintf(at, ",\"\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac%d\"", i);
                (void)strcpy(at, "]}");
                check_end(schema, "1", "\", ...");
        }
}

/* The error names the mistake, however long the path is. */
static void test_long_paths(void **state) {
        char schema[8000], value[4000], *s = schema, *v = value;

        (void)state;
        for (int i = 0; i < 20; i++) {
                s += sprintf(s, "{\"properties\":{\"\u20ac\u20ac\u20ac%0100d\":", i);
                v += sprintf(v, "{\"\u20ac\u20ac\u20ac%0100d\":", i);
        }
        s = stpcpy(s, "{\"type\":\"null\"}");
        v = stpcpy(v, "1");
        for (int i = 0; i < 20; i++) {
                s = stpcpy(s, "}}");
                v = stpcpy(v, "}");
        }
        check_end(schema, value, "...: must be null");
}

/* An unknown keyword, or one with an odd value, refuses nothing. */
static void test_odd_schemas(void **state) {
        static const char *const schemas[] = {
                "{}",
                "{\"title\":\"x\",\"format\":\"uri\",\"minimum\":\"5\"}",
                "{\"minimum\":5,\"maxLength\":0,\"multipleOf\":2}",
                ("{\"minItems\":\"5\",\"uniqueItems\":1,\"multipleOf\":-1,\"not\":5,\"if\":5,"
                 "\"then\":false}"),
                "{\"allOf\":1,\"oneOf\":[],\"prefixItems\":{}}",
                "{\"$ref\":5}",
                "{\"$ref\":\"#/$defs/none\"}",
                "{\"$ref\":\"other.json\"}",
                "{\"patternProperties\":{\"a\":{}},\"additionalProperties\":false}",
                "{\"type\":5}",
                "{\"type\":\"any\"}",
                "{\"type\":[]}",
                "{\"type\":[5]}",
                "{\"required\":\"a\"}",
                "{\"required\":[1]}",
                "{\"properties\":[]}",
                "{\"properties\":{\"a\":true}}",
                "{\"items\":[true]}",
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

static void check_too_much(const char *schema, const char *value) {
        JsonDocument *s = parse(schema), *v = parse(value);
        Error error;

        assert_int_equal(json_schema_check(json_root(s), json_root(v), &error), -E2BIG);
        assert_int_equal(error.kind, ERROR_LIMIT);
        json_free(s);
        json_free(v);
}

/* 100,000 items, each of which is compared with 2,000 values. */
static void test_too_much(void **state) {
        _cleanup_free_ char *schema = malloc(20000), *value = malloc(600000);
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
        check_too_much(schema, value);
}

/* Returns {"allOf":[each,each,...]}. */
static char *many(const char *each, size_t count) {
        char *schema = malloc(20 + count * (strlen(each) + 1)), *at;

        assert_non_null(schema);
        at = stpcpy(schema, "{\"allOf\":[");
        for (size_t i = 0; i < count; i++)
                at += sprintf(at, "%s,", each);
        (void)strcpy(at - 1, "]}");
        return schema;
}

/* A text costs as much as its length. A union of schemas that refer to themselves reads it once for
 * each path to it. */
static void test_too_much_text(void **state) {
        static const size_t length = 1000000;
        _cleanup_free_ char *lengths = many("{\"maxLength\":1000000}", 1000);
        _cleanup_free_ char *first = many("{\"minLength\":3,\"not\":{\"maxLength\":3}}", 10000);
        _cleanup_free_ char *unique = many("{\"uniqueItems\":true}", 20000);
        _cleanup_free_ char *text = malloc(length + 1), *value = NULL;
        _cleanup_free_ char *items = NULL, *members = NULL;

        (void)state;
        assert_non_null(text);
        memset(text, 'a', length);
        text[length] = '\0';
        value = str_format("\"%s\"", text);
        check_too_much(lengths, value);
        check(first, value, NULL); /* the first few characters differ */
        text[length / 4] = '\0';
        items = str_format("[\"%s1\",\"%s2\"]", text, text);
        check_too_much(unique, items);
        members = str_format("[{\"%s\":1},{\"%s\":2}]", text, text);
        check_too_much(unique, members);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_types),
                cmocka_unit_test(test_objects),
                cmocka_unit_test(test_enums),
                cmocka_unit_test(test_any_of),
                cmocka_unit_test(test_other_combinations),
                cmocka_unit_test(test_one_of_two_ways),
                cmocka_unit_test(test_errors_come_from_the_schema_that_is_meant),
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_sizes),
                cmocka_unit_test(test_tuples),
                cmocka_unit_test(test_references),
                cmocka_unit_test(test_names_in_references),
                cmocka_unit_test(test_circles),
                cmocka_unit_test(test_verify),
                cmocka_unit_test(test_long_choices),
                cmocka_unit_test(test_long_paths),
                cmocka_unit_test(test_odd_schemas),
                cmocka_unit_test(test_too_much),
                cmocka_unit_test(test_too_much_text),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
