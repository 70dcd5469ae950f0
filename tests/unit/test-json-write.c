/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that base/json-write.c writes text that base/json.c accepts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json-write.h"
#include "base/json.h"
#include "base/util.h"

static void write_sample(JsonWriter *w) {
        json_write_object(w, NULL);
        json_write_string(w, "s", "a\"\\\n\x1f");
        json_write_array(w, "l");
        json_write_int(w, NULL, INT64_MIN);
        json_write_uint(w, NULL, UINT64_MAX);
        json_write_object(w, NULL);
        json_write_end(w);
        json_write_array(w, NULL);
        json_write_end(w);
        json_write_end(w);
        json_write_bool(w, "t", true);
        json_write_null(w, "n");
        json_write_string(w, "z", NULL);
        json_write_uint_or_null(w, "u", 0);
        json_write_uint_or_null(w, "v", UINT64_MAX);
        json_write_end(w);
        assert_int_equal(json_write_finish(w), 0);
}

static void test_write_compact(void **state) {
        JsonWriter w = { 0 };

        (void)state;
        write_sample(&w);
        assert_string_equal(w.data, "{\"s\":\"a\\\"\\\\\\n\\u001f\",\"l\":[-9223372036854775808,"
                                    "18446744073709551615,{},[]],\"t\":true,\"n\":null,"
                                    "\"z\":null,\"u\":null,\"v\":18446744073709551615}\n");
        assert_int_equal(w.length, strlen(w.data));
        json_write_clear(&w);
        json_write_uint(&w, NULL, 1);
        assert_int_equal(json_write_finish(&w), 0);
        assert_string_equal(w.data, "1\n");
        json_write_clear(&w);
}

static void test_write_value(void **state) {
        JsonWriter w = { 0 }, value = { 0 };

        (void)state;
        json_write_object(&value, NULL);
        json_write_uint(&value, "a", 1);
        json_write_end(&value);
        json_write_array(&w, NULL);
        json_write_value(&w, NULL, &value);
        assert_int_equal(json_write_finish(&value), 0);
        json_write_value(&w, NULL, &value); /* without its newline */
        json_write_object(&w, NULL);
        json_write_value(&w, "v", &value);
        json_write_end(&w);
        json_write_end(&w);
        assert_int_equal(json_write_finish(&w), 0);
        assert_string_equal(w.data, "[{\"a\":1},{\"a\":1},{\"v\":{\"a\":1}}]\n");
        json_write_clear(&w);
        json_write_clear(&value);
}

static void test_write_pretty(void **state) {
        JsonWriter w = { .pretty = true };

        (void)state;
        write_sample(&w);
        assert_string_equal(w.data, "{\n"
                                    "  \"s\": \"a\\\"\\\\\\n\\u001f\",\n"
                                    "  \"l\": [\n"
                                    "    -9223372036854775808,\n"
                                    "    18446744073709551615,\n"
                                    "    {},\n"
                                    "    []\n"
                                    "  ],\n"
                                    "  \"t\": true,\n"
                                    "  \"n\": null,\n"
                                    "  \"z\": null,\n"
                                    "  \"u\": null,\n"
                                    "  \"v\": 18446744073709551615\n"
                                    "}\n");
        json_write_clear(&w);
        assert_true(w.pretty);
}

static void test_write_hostile_strings(void **state) {
        static const struct {
                const char *text, *json;
        } cases[] = {
                { "\xff", "\"\xef\xbf\xbd\"\n" },
                { "a\xe2\x82", "\"a\xef\xbf\xbd\xef\xbf\xbd\"\n" },
                { "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\n" },
                { "\xf0\x9f\xa6\xa6", "\"\xf0\x9f\xa6\xa6\"\n" },
                { "\x1b[31m\x7f", "\"\\u001b[31m\\u007f\"\n" },
                { "\xc2\x9b"
                  "31m",
                  "\"\\u009b31m\"\n" },
        };
        JsonWriter w = { 0 };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                json_write_string(&w, NULL, cases[i].text);
                assert_int_equal(json_write_finish(&w), 0);
                assert_string_equal(w.data, cases[i].json);
                json_write_clear(&w);
        }
        json_write_bytes(&w, NULL, "a\0b", 3);
        assert_int_equal(json_write_finish(&w), 0);
        assert_string_equal(w.data, "\"a\xef\xbf\xbd"
                                    "b\"\n");
        json_write_clear(&w);
}

/* Any written bytes read back unchanged. */
static void test_write_then_parse(void **state) {
        char text[257];
        JsonDocument *document = NULL;
        JsonWriter w = { .pretty = true };
        Error error;

        (void)state;
        for (unsigned i = 1; i < 128; i++)
                text[i - 1] = (char)i;
        text[127] = '\0';
        json_write_object(&w, NULL);
        json_write_string(&w, text, text);
        json_write_end(&w);
        assert_int_equal(json_write_finish(&w), 0);
        assert_int_equal(json_parse(w.data, w.length, "w", &document, &error), 0);
        assert_string_equal(json_string(json_member(json_root(document), text)), text);
        json_free(document);
        json_write_clear(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_write_compact),
                cmocka_unit_test(test_write_value),
                cmocka_unit_test(test_write_pretty),
                cmocka_unit_test(test_write_hostile_strings),
                cmocka_unit_test(test_write_then_parse),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
