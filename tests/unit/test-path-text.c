/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/path-text.h"
#include "base/util.h"

static void test_both_ways(void **state) {
        static const struct {
                const char *path, *text;
        } cases[] = {
                { "", "" },
                { "a/b c", "a/b c" },
                { "\xc3\xa9", "\xc3\xa9" },
                { "caf\xe9", "\1Y2Fm6Q==" },
                { "\1", "\1AQ==" },
                { "\1plain", "\1AXBsYWlu" },
                { "a\1", "a\1" },
                { "\xed\xa0\x80", "\0017aCA" }, /* a surrogate is not UTF-8 */
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = path_text(cases[i].path), *path = NULL;

                assert_string_equal(text, cases[i].text);
                assert_int_equal(path_from_text(text, &path), 0);
                assert_string_equal(path, cases[i].path);
        }
}

static void test_invalid_paths_are_refused(void **state) {
        static const char *const texts[] = { "\1a", "\1AA==" /* NUL */, "\1YQBi" /* a NUL b */,
                                             "\1 ", "\1YR==" };
        char *path = NULL;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                assert_int_equal(path_from_text(texts[i], &path), -EINVAL);
        assert_null(path);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_both_ways),
                cmocka_unit_test(test_invalid_paths_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
