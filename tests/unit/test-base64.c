/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"
#include "base/util.h"

/* The examples of RFC 4648, section 10, and the last two digits. */
static void test_both_ways(void **state) {
        static const struct {
                const char *bytes, *text;
        } cases[] = {
                { "", "" },
                { "f", "Zg==" },
                { "fo", "Zm8=" },
                { "foo", "Zm9v" },
                { "foob", "Zm9vYg==" },
                { "fooba", "Zm9vYmE=" },
                { "foobar", "Zm9vYmFy" },
                { "\xfb\xff\xfe", "+//+" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = NULL, *bytes = NULL;
                size_t length = 0;

                text = base64_encode(cases[i].bytes, strlen(cases[i].bytes));
                assert_string_equal(text, cases[i].text);
                assert_int_equal(base64_decode(text, &bytes, &length), 0);
                assert_int_equal(length, strlen(cases[i].bytes));
                assert_string_equal(bytes, cases[i].bytes);
        }
}

static void test_every_byte(void **state) {
        _cleanup_free_ char *text = NULL, *back = NULL;
        unsigned char bytes[3 * 256];
        size_t length = 0;

        (void)state;
        for (size_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (unsigned char)(i * 7 + i / 256);
        for (size_t n = sizeof(bytes) - 3; n <= sizeof(bytes); n++) {
                text = base64_encode(bytes, n);
                assert_int_equal(base64_decode(text, &back, &length), 0);
                assert_int_equal(length, n);
                assert_memory_equal(back, bytes, n);
                assert_int_equal(back[n], 0);
                free(TAKE_PTR(text));
                free(TAKE_PTR(back));
        }
}

static void test_invalid_base64_is_refused(void **state) {
        static const char *const cases[] = {
                "Z",     "Zg",    "Zg=",      "Zm9",      "Zm9v\n",   "Zm9v Zm9v", "Zg==Zg==",
                "=",     "==",    "====",     "Z===",     "=Zm9",     "Z=g=",      "Zm9vYm=F",
                "Zh==",  "Zm9=",  "Zm9\x80",  "Zm-_",     "Zm9v====", " Zm9",      "Zm9.",
                "Zg== ", "\nZg=", "Zm8=Zm8=", "Zm9vYg=A",
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char *bytes = NULL;
                size_t length = 42;

                if (base64_decode(cases[i], &bytes, &length) != -EINVAL)
                        fail_msg("\"%s\"", cases[i]);
                assert_null(bytes);
                assert_int_equal(length, 42);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_both_ways),
                cmocka_unit_test(test_every_byte),
                cmocka_unit_test(test_invalid_base64_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
