/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that base/json.c refuses everything that is not strictly JSON. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json-write.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/utf8.h"

static int parse(const char *text, JsonDocument **ret, Error *reterr) {
        return json_parse(text, strlen(text), "t.json", ret, reterr);
}

/* --- accepted texts --- */

static void test_takes_strict_json(void **state) {
        static const char *const texts[] = {
                "{}",
                "[]",
                " \t\r\n{ \"a\" : [ 1 , 2 ] } \n",
                "null",
                "true",
                "false",
                "\"\"",
                "0",
                "-0",
                "-1.5e+3",
                "1E5",
                "0.1",
                "0.30000000000000004",
                "1.0000000000000000000",
                "9007199254740991",
                "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"",
                "\"\\ud83e\\udda6\"",
                "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\xa6\xa6\"",
                "{\"a\":1,\"A\":2}",
                "[{\"a\":1},{\"a\":2}]",
                "{\"a\":{\"a\":{\"a\":1}}}",
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                JsonDocument *document = NULL;
                Error error = { 0 };

                if (parse(texts[i], &document, &error) != 0)
                        fail_msg("%s: %s", texts[i], error.text);
                json_free(document);
        }
}

/* --- refused texts, and the place of the error --- */

static void test_refuses_with_line_and_column(void **state) {
        static const struct {
                const char *text, *message;
        } cases[] = {
                { "", "t.json:1:1: the document is empty" },
                { "  ", "t.json:1:1: the document is empty" },
                { "[", "t.json:1:2: expected a value, but the text ends here" },
                { "{", "t.json:1:2: expected a key in double quotes" },
                { "[1", "t.json:1:3: expected \",\" or \"]\"" },
                { "{\"a\":1", "t.json:1:7: expected \",\" or \"}\"" },
                { "[1,]", "t.json:1:4: remove the \",\" before this \"]\"" },
                { "{\"a\":1,}", "t.json:1:8: remove the \",\" before this \"}\"" },
                { "{a:1}", "t.json:1:2: expected a key in double quotes" },
                { "{\"a\" 1}", "t.json:1:6: expected \":\"" },
                { "{}{}", "t.json:1:3: more text after the end of the document" },
                { "{} x", "t.json:1:4: more text after the end of the document" },
                { "{\n  \"a\": 1,\n  \"b\": nul\n}", "t.json:3:8: not a JSON value" },
                { "// c\n{}", "t.json:1:1: not a JSON value" },
                { "'a'", "t.json:1:1: not a JSON value" },
                { "NaN", "t.json:1:1: not a JSON value" },
                { "Infinity", "t.json:1:1: not a JSON value" },
                { "True", "t.json:1:1: not a JSON value" },
                { "\xef\xbb\xbf{}",
                  "t.json:1:1: the text starts with a byte order mark; save it without one" },
                { "\f{}", "t.json:1:1: not a JSON value" },
                /* strings */
                { "\"a", "t.json:1:1: this string does not end" },
                { "\"a\\\"", "t.json:1:1: this string does not end" },
                { "\"a\nb\"", "t.json:1:3: a control character in a string; write it as \\u00XX" },
                { "\"\\x\"", "t.json:1:2: unknown escape in a string" },
                { "\"\\", "t.json:1:2: unknown escape in a string" },
                { "\"\\u12g4\"", "t.json:1:2: \\u needs four hex digits" },
                { "\"\\u12", "t.json:1:2: \\u needs four hex digits" },
                { "\"ab\\u0000cd\"", "t.json:1:4: \\u0000 would cut the string" },
                { "{\"a\\u0000b\":1}", "t.json:1:4: \\u0000 would cut the string" },
                { "\"\\ud83e\"", "t.json:1:2: half of a surrogate pair" },
                { "\"\\udda6\"", "t.json:1:2: half of a surrogate pair" },
                { "\"\\ud83e\\ud83e\"", "t.json:1:2: half of a surrogate pair" },
                { "\"\\ud83e\\n\"", "t.json:1:2: half of a surrogate pair" },
                { "\"\\ud83eabcdef\"", "t.json:1:2: half of a surrogate pair" },
                /* invalid UTF-8; columns are characters */
                { "\"\xc3\xa9\xff\"", "t.json:1:3: not UTF-8" },
                { "\"\x80\"", "t.json:1:2: not UTF-8" },
                { "\"\xc0\xaf\"", "t.json:1:2: not UTF-8" },
                { "\"\xed\xa0\x80\"", "t.json:1:2: not UTF-8" },
                { "\"\xf4\x90\x80\x80\"", "t.json:1:2: not UTF-8" },
                { "\"\xe2\x82\"", "t.json:1:2: not UTF-8" },
                /* numbers */
                { "01", "t.json:1:1: a number must not start with 0" },
                { "-", "t.json:1:1: not a JSON value" },
                { "+1", "t.json:1:1: not a JSON value" },
                { ".5", "t.json:1:1: not a JSON value" },
                { "1.", "t.json:1:3: a number needs a digit after its decimal point" },
                { "1e", "t.json:1:3: a number needs a digit in its exponent" },
                { "0x10", "t.json:1:2: more text after the end of the document" },
                { "1e999", "t.json:1:1: a number that is too large" },
                { "9007199254740992", "t.json:1:1: an integer beyond 2^53 - 1 would lose digits" },
                { "-9007199254740993", "t.json:1:1: an integer beyond 2^53 - 1 would lose digits" },
                { "0.99999999999999999999", "t.json:1:1: a number that would lose digits" },
                { "12345678901234567890.5e1", "t.json:1:1: a number that would lose digits" },
                { "9007199254740993.0", "t.json:1:1: a number that would lose digits" },
                { "1.2345678901234561e17", "t.json:1:1: a number that would lose digits" },
                { "0.00000000000000000000000000000000000000000000000000000000000000001",
                  "t.json:1:1: a number of more than 40 characters" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                JsonDocument *document = NULL;
                Error error = { 0 };

                assert_int_equal(parse(cases[i].text, &document, &error), -EINVAL);
                assert_null(document);
                assert_string_equal(error.text, cases[i].message);
                assert_int_equal(error.kind, ERROR_POLICY);
        }
}

static void test_refuses_nul_bytes(void **state) {
        JsonDocument *document = NULL;
        Error error;

        (void)state;
        assert_int_equal(json_parse("{}\0", 3, "t", &document, &error), -EINVAL);
        assert_int_equal(json_parse("\0{}", 3, "t", &document, &error), -EINVAL);
        assert_int_equal(json_parse("\"a\0b\"", 5, "t", &document, &error), -EINVAL);
        assert_int_equal(json_parse("[1\0]", 4, "t", &document, &error), -EINVAL);
}

static void test_reads_no_byte_past_the_end(void **state) {
        static const char *const texts[] = { "\"\\u00e9\"", "[1,2]", "{\"a\":true}",
                                             "\"\xe2\x82\xac\"" };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                for (size_t length = 0; length < strlen(texts[i]); length++) {
                        /* The copy is on the heap with its exact size, for the address sanitizer.
                         */
                        char *copy = malloc(length ? length : 1);
                        JsonDocument *document = NULL;
                        Error error;

                        assert_non_null(copy);
                        memcpy(copy, texts[i], length);
                        assert_int_equal(json_parse(copy, length, "t", &document, &error), -EINVAL);
                        free(copy);
                }
        }
}

static void test_refuses_equal_keys_with_path(void **state) {
        static const struct {
                const char *text, *message;
        } cases[] = {
                { "{\"a\":1,\"a\":2}", "t.json: $.a is a duplicate key" },
                { "{\"limits\":{\"pids\":1,\"x\":0,\"pids\":2}}",
                  "t.json: $.limits.pids is a duplicate key" },
                { "{\"l\":[{},{\"a b\":1,\"a b\":1}]}",
                  "t.json: $.l[1][\"a b\"] is a duplicate key" },
                { "{\"a\":1,\"\\u0061\":2}", "t.json: $.a is a duplicate key" },
                { "{\"\":1,\"\":2}", "t.json: $[\"\"] is a duplicate key" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                JsonDocument *document = NULL;
                Error error = { 0 };

                assert_int_equal(parse(cases[i].text, &document, &error), -EINVAL);
                assert_string_equal(error.text, cases[i].message);
        }
}

/* --- limits --- */

/* Repeats open, then inner, then repeats close. Owned by the caller. */
static char *nested(const char *open, const char *inner, const char *close, size_t times) {
        size_t a = strlen(open), b = strlen(inner), c = strlen(close);
        char *text = malloc(times * (a + c) + b + 1), *at = text;

        assert_non_null(text);
        for (size_t i = 0; i < times; i++, at += a)
                memcpy(at, open, a);
        memcpy(at, inner, b);
        at += b;
        for (size_t i = 0; i < times; i++, at += c)
                memcpy(at, close, c);
        *at = '\0';
        return text;
}

static void test_depth(void **state) {
        static const struct {
                const char *open, *inner, *close;
                size_t times;
                int result;
        } cases[] = {
                { "[", "", "]", JSON_DEPTH_MAX, 0 },
                { "[", "", "]", JSON_DEPTH_MAX + 1, -EINVAL },
                { "{\"a\":", "1", "}", JSON_DEPTH_MAX, 0 },
                { "{\"a\":", "1", "}", JSON_DEPTH_MAX + 1, -EINVAL },
                { "[", "", "", 500000, -EINVAL },
                { "{\"a\":[", "", "", 100000, -EINVAL },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = nested(cases[i].open, cases[i].inner, cases[i].close,
                                                   cases[i].times);
                JsonDocument *document = NULL;
                Error error;

                assert_int_equal(parse(text, &document, &error), cases[i].result);
                json_free(document);
        }
}

/* A value that was read can be written into another, deeper document. */
static void test_copy(void **state) {
        static const char *const texts[] = {
                "0",
                "-0.0",
                "1.5",
                "0.1",
                "-1e-07",
                "1e+300",
                "4.94065645841247e-324",
                "9007199254740991",
                "1.7976931348623157e+308",
                "3.3333333333333335e+21",
                "0.30000000000000004",
                "[{\"a\":[1.25,null,true,\"x\"]}]",
        };
        _cleanup_free_ char *deep = nested("{\"a\":", "1", "}", JSON_DEPTH_MAX);

        (void)state;
        for (size_t i = 0; i <= ELEMENTSOF(texts); i++) {
                const char *text = i < ELEMENTSOF(texts) ? texts[i] : deep;
                _cleanup_free_ char *expected = str_format("[{\"v\":%s}]\n", text);
                JsonDocument *document = NULL;
                JsonWriter w = { 0 };
                Error error;

                assert_int_equal(parse(text, &document, &error), 0);
                json_write_array(&w, NULL);
                json_write_object(&w, NULL);
                json_copy(&w, "v", json_root(document));
                json_write_end(&w);
                json_write_end(&w);
                assert_int_equal(json_write_finish(&w), 0);
                assert_string_equal(w.data, expected);
                json_write_clear(&w);
                json_free(document);
        }
}

static void test_size(void **state) {
        size_t size = 10 << 20;
        _cleanup_free_ char *text = malloc(size + 1);
        JsonDocument *document = NULL;
        Error error;

        (void)state;
        assert_non_null(text);
        memset(text, 'a', size);
        text[0] = text[size - 1] = '"';
        text[size] = '\0';
        assert_int_equal(parse(text, &document, &error), -EFBIG);
        assert_string_equal(error.text, "t.json: more than 1024 KiB of JSON");

        text[JSON_SIZE_MAX - 1] = '"';
        assert_int_equal(json_parse(text, JSON_SIZE_MAX, "t", &document, &error), 0);
        assert_int_equal(strlen(json_string(json_root(document))), JSON_SIZE_MAX - 2);
        document = json_free(document);
        assert_int_equal(json_parse(text, JSON_SIZE_MAX + 1, "t", &document, &error), -EFBIG);
}

/* 100,000 keys: comparing each pair would take minutes. */
static void test_many_keys(void **state) {
        _cleanup_free_ char *text = malloc(JSON_SIZE_MAX);
        JsonDocument *document = NULL;
        size_t at = 0;
        Error error;

        (void)state;
        assert_non_null(text);
        for (unsigned i = 0; i < 80000; i++)
                at += (size_t)snprintf(text + at, JSON_SIZE_MAX - at, "%s\"k%u\":0", i ? "," : "{",
                                       i);
        text[at++] = '}';
        assert_int_equal(json_parse(text, at, "t", &document, &error), 0);
        document = json_free(document);

        at--;
        at += (size_t)snprintf(text + at, JSON_SIZE_MAX - at, ",\"k40000\":0}");
        assert_int_equal(json_parse(text, at, "t", &document, &error), -EINVAL);
        assert_string_equal(error.text, "t: $.k40000 is a duplicate key");
}

static void test_name_is_quoted(void **state) {
        JsonDocument *document = NULL;
        Error error;

        (void)state;
        assert_int_equal(json_parse("x", 1, "a\n\x1b[31m.json", &document, &error), -EINVAL);
        assert_string_equal(error.text, "a\\x0a\\x1b[31m.json:1:1: not a JSON value");
        assert_int_equal(json_parse("x", 1, "a", &document, NULL), -EINVAL);
}

/* --- values --- */

static void test_values(void **state) {
        JsonDocument *document = NULL;
        const JsonValue *root, *list;
        uint64_t number = 7;
        int64_t integer = 7;
        bool yes = false;
        Error error;

        (void)state;
        assert_int_equal(parse("{\"s\":\"\\u00e9\",\"n\":5,\"f\":1.5,\"m\":-1,\"b\":true,"
                               "\"z\":null,\"l\":[1,\"x\"],\"big\":9007199254740991,\"e\":1e2,"
                               "\"huge\":-1e300}",
                               &document, &error),
                         0);
        root = json_root(document);
        assert_int_equal(json_type(root), JSON_OBJECT);
        assert_null(json_key(root));
        assert_string_equal(json_string(json_member(root, "s")), "\xc3\xa9");
        assert_null(json_member(root, "S"));
        assert_null(json_member(root, "none"));
        assert_null(json_string(json_member(root, "n")));

        assert_int_equal(json_uint(json_member(root, "n"), 5, &number), 0);
        assert_int_equal(number, 5);
        assert_int_equal(json_uint(json_member(root, "e"), 100, &number), 0);
        assert_int_equal(number, 100);
        assert_int_equal(json_uint(json_member(root, "n"), 4, &number), -ERANGE);
        assert_int_equal(json_uint(json_member(root, "f"), 9, &number), -EINVAL);
        assert_int_equal(json_uint(json_member(root, "m"), 9, &number), -ERANGE);
        assert_int_equal(json_uint(json_member(root, "s"), 9, &number), -EINVAL);
        assert_int_equal(number, 100);
        assert_int_equal(json_uint(json_member(root, "big"), UINT64_MAX, &number), 0);
        assert_int_equal(number, JSON_INTEGER_MAX);

        assert_int_equal(json_int(json_member(root, "m"), &integer), 0);
        assert_int_equal(integer, -1);
        assert_int_equal(json_int(json_member(root, "big"), &integer), 0);
        assert_int_equal(integer, JSON_INTEGER_MAX);
        assert_int_equal(json_int(json_member(root, "f"), &integer), -EINVAL);
        assert_int_equal(json_int(json_member(root, "s"), &integer), -EINVAL);
        assert_int_equal(json_int(json_member(root, "huge"), &integer), -ERANGE);

        assert_int_equal(json_bool(json_member(root, "b"), &yes), 0);
        assert_true(yes);
        assert_int_equal(json_bool(json_member(root, "z"), &yes), -EINVAL);
        assert_int_equal(json_type(json_member(root, "z")), JSON_NULL);

        list = json_member(root, "l");
        assert_string_equal(json_key(list), "l");
        assert_int_equal(json_type(list), JSON_ARRAY);
        assert_null(json_member(list, "x"));
        assert_string_equal(json_string(json_next(json_first(list))), "x");
        assert_null(json_next(json_next(json_first(list))));
        assert_null(json_first(json_member(root, "n")));
        json_free(document);
        assert_null(json_free(NULL));
}

static void test_paths(void **state) {
        static const struct {
                const char *key, *path;
        } cases[] = {
                { "limits", "$.limits" },
                { "$schema", "$.$schema" },
                { "a b", "$[\"a b\"]" },
                { "", "$[\"\"]" },
                { "1", "$[\"1\"]" },
                { "a.b", "$[\"a.b\"]" },
                { "a\"\n", "$[\"a\\x22\\x0a\"]" },
        };
        char *path = json_path_index("$.a", 3);

        (void)state;
        assert_string_equal(path, "$.a[3]");
        free(path);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                path = json_path_key("$", cases[i].key);
                assert_string_equal(path, cases[i].path);
                free(path);
        }
}

/* --- UTF-8 --- */

/* Tests every code point, encoded by the rule alone. */
static void test_utf8_every_code_point(void **state) {
        (void)state;
        for (unsigned c = 0; c <= 0x10ffff; c++) {
                char s[4];
                size_t length;

                if (c < 0x80)
                        length = 1, s[0] = (char)c;
                else if (c < 0x800)
                        length = 2, s[0] = (char)(0xc0 | c >> 6);
                else if (c < 0x10000)
                        length = 3, s[0] = (char)(0xe0 | c >> 12);
                else
                        length = 4, s[0] = (char)(0xf0 | c >> 18);
                for (size_t i = 1; i < length; i++)
                        s[i] = (char)(0x80 | (c >> 6 * (length - 1 - i) & 0x3f));
                if (utf8_sequence(s, 4) != (c >= 0xd800 && c <= 0xdfff ? 0 : length))
                        fail_msg("U+%04X", c);
                assert_int_equal(utf8_sequence(s, length - 1), 0);
        }
}

static void test_missing_values(void **state) {
        static const char text[] = "{\"a\": {\"text\": \"x\", \"number\": 7}, \"b\": [1]}";
        const JsonValue *root, *a;
        JsonDocument *document;
        uint64_t number = 5;
        bool yes = true;

        (void)state;
        assert_int_equal(json_parse(text, strlen(text), "t", &document, NULL), 0);
        root = json_root(document);
        a = json_member(root, "a");
        assert_string_equal(json_member_string(a, "text"), "x");
        assert_string_equal(json_member_text(a, "text"), "x");
        assert_int_equal(json_member_uint(a, "number"), 7);
        assert_null(json_member_string(a, "number"));
        assert_string_equal(json_member_text(a, "none"), "");
        assert_int_equal(json_member_uint(a, "text"), 0);
        assert_null(json_member_string(json_member(root, "b"), "text"));
        assert_null(json_member_string(json_member(json_member(root, "none"), "a"), "text"));
        assert_null(json_first(NULL));
        assert_int_equal(json_uint(NULL, 9, &number), -EINVAL);
        assert_int_equal(json_bool(NULL, &yes), -EINVAL);
        assert_true(number == 5 && yes);
        json_free(document);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_takes_strict_json),
                cmocka_unit_test(test_refuses_with_line_and_column),
                cmocka_unit_test(test_refuses_nul_bytes),
                cmocka_unit_test(test_reads_no_byte_past_the_end),
                cmocka_unit_test(test_refuses_equal_keys_with_path),
                cmocka_unit_test(test_depth),
                cmocka_unit_test(test_copy),
                cmocka_unit_test(test_size),
                cmocka_unit_test(test_many_keys),
                cmocka_unit_test(test_name_is_quoted),
                cmocka_unit_test(test_values),
                cmocka_unit_test(test_paths),
                cmocka_unit_test(test_missing_values),
                cmocka_unit_test(test_utf8_every_code_point),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
