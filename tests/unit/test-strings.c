/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <errno.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/strings.h"
#include "base/utf8.h"

static void test_durations(void **state) {
        static const struct {
                const char *text;
                int result;
                uint64_t usec;
        } cases[] = {
                { "1", 0, 1000000 },     { "0", 0, 0 },
                { "250ms", 0, 250000 },  { "1.5", 0, 1500000 },
                { "1.5m", 0, 90000000 }, { "0.000001", 0, 1 },
                { "2h", 0, 7200000000 }, { "1d", 0, 86400000000 },
                { "7us", 0, 7 },         { "", -EINVAL, 0 },
                { "s", -EINVAL, 0 },     { "-1", -EINVAL, 0 },
                { "1 s", -EINVAL, 0 },   { "1.", -EINVAL, 0 },
                { "1e3", -EINVAL, 0 },   { "1.0000001", -EINVAL, 0 },
                { "1001d", -ERANGE, 0 }, { "99999999999999999999", -ERANGE, 0 },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint64_t usec = 42;

                if (str_to_usec(cases[i].text, &usec) != cases[i].result)
                        fail_msg("\"%s\"", cases[i].text);
                assert_int_equal(usec, cases[i].result ? 42 : cases[i].usec);
        }
}

static void test_bytes(void **state) {
        static const struct {
                const char *text;
                int result;
                uint64_t bytes;
        } cases[] = {
                { "4096", 0, 4096 },        { "64KiB", 0, 65536 },
                { "64K", 0, 65536 },        { "1GB", 0, 1000000000 },
                { "2GiB", 0, 1ULL << 31 },  { "0.5M", 0, 1 << 19 },
                { "2g", 0, 1ULL << 31 },    { "2Gi", 0, 1ULL << 31 },
                { "1gib", -EINVAL, 0 },     { "1 GiB", -EINVAL, 0 },
                { "1gi", -EINVAL, 0 },      { "1kiB", -EINVAL, 0 },
                { "2000000T", -ERANGE, 0 }, { "18446744073709551616", -ERANGE, 0 },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint64_t bytes = 42;

                if (str_to_bytes(cases[i].text, &bytes) != cases[i].result)
                        fail_msg("\"%s\"", cases[i].text);
                assert_int_equal(bytes, cases[i].result ? 42 : cases[i].bytes);
        }
}

static void test_whole_numbers(void **state) {
        uint64_t value = 42;

        (void)state;
        assert_int_equal(str_to_uint("10", 10, &value), 0);
        assert_int_equal(value, 10);
        assert_int_equal(str_to_uint("11", 10, &value), -ERANGE);
        assert_int_equal(str_to_uint("+1", 10, &value), -EINVAL);
        assert_int_equal(str_to_uint(" 1", 10, &value), -EINVAL);
        assert_int_equal(str_to_uint("0x1", 10, &value), -EINVAL);
        assert_int_equal(value, 10);
}

/* A terminal gets no character that it would act on. */
static void test_quoting_untrusted_text(void **state) {
        static const struct {
                const char *text, *quoted;
        } cases[] = {
                { "plain", "plain" },
                { "\x1b[2J", "\\x1b[2J" },
                { "a\nb", "a\\x0ab" },
                { "\"\\", "\\x22\\x5c" },
                { "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
                { "\xc2\x9b", "\\xc2\\x9b" }, /* CSI as one C1 character */
                { "\xff\xc3", "\\xff\\xc3" },
        };
        char buf[16];

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_string_equal(str_quote(cases[i].text, buf, sizeof(buf)), cases[i].quoted);
        assert_string_equal(str_quote("0123456789abcdef", buf, sizeof(buf)), "0123456789ab...");
}

static void test_lists(void **state) {
        StrList list = { 0 };

        (void)state;
        assert_int_equal(strlist_add(&list, "a"), 0);
        assert_int_equal(strlist_take(&list, strdup("b")), 0);
        assert_int_equal(strlist_take(&list, NULL), -ENOMEM);
        assert_true(strlist_has(&list, "b"));
        assert_false(strlist_has(&list, "c"));
        assert_null(list.items[2]);
        strlist_clear(&list);
        assert_int_equal(list.count, 0);
}

static void test_errors_say_what_and_how(void **state) {
        Error error;

        (void)state;
        assert_int_equal(error_set(&error, ERROR_NOT_FOUND, ENOENT, "no %s", "x"), -ENOENT);
        assert_int_equal(error_cure(&error, -ENOENT, "make it"), -ENOENT);
        assert_string_equal(error.text, "no x");
        assert_string_equal(error.cure, "make it");
        assert_int_equal(error_exit_code(&error), 127);
        assert_string_equal(error_errno_name(ENOENT), "ENOENT");
        assert_int_equal(error_set(NULL, ERROR_SETUP, 0, "nobody listens"), -EINVAL);
}

static void test_invisible_characters_are_escaped(void **state) {
        static const struct {
                const char *text, *visible;
        } cases[] = {
                { "a\u202eb", "a\\xe2\\x80\\xaeb" },
                { "\u200b", "\\xe2\\x80\\x8b" },
                { "\u200f", "\\xe2\\x80\\x8f" },
                { "\u2066", "\\xe2\\x81\\xa6" },
                { "\ufeff", "\\xef\\xbb\\xbf" },
                { "\u200a", "\\xe2\\x80\\x8a" },
                { "\u2028", "\\xe2\\x80\\xa8" },
                { "\u202f", "\\xe2\\x80\\xaf" },
                { "\u206a", "\\xe2\\x81\\xaa" },
                { "\u00ad", "\\xc2\\xad" },
                { "\u061c", "\\xd8\\x9c" },
                { "\u2800", "\\xe2\\xa0\\x80" },
                { "\U000e0041", "\\xf3\\xa0\\x81\\x81" },
        };
        char buf[64];

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_string_equal(str_visible(cases[i].text, buf, sizeof(buf)), cases[i].visible);
}

/* Tests both ends of every range, and their neighbours. */
static void test_neighbours_of_invisible_characters_stay(void **state) {
        static const struct {
                const char *hidden[2], *beside[2];
        } ranges[] = {
                { { "\xc2\x80", "\u00a0" }, { "~", "\u00a1" } },
                { { "\u00ad", "\u00ad" }, { "\u00ac", "\u00ae" } },
                { { "\u034f", "\u034f" }, { "\u034e", "\u0350" } },
                { { "\u061c", "\u061c" }, { "\u061b", "\u061d" } },
                { { "\u115f", "\u1160" }, { "\u115e", "\u1161" } },
                { { "\u1680", "\u1680" }, { "\u167f", "\u1681" } },
                { { "\u17b4", "\u17b5" }, { "\u17b3", "\u17b6" } },
                { { "\u180b", "\u180f" }, { "\u180a", "\u1810" } },
                { { "\u2000", "\u200f" }, { "\u1fff", "\u2010" } },
                { { "\u2028", "\u202f" }, { "\u2027", "\u2030" } },
                { { "\u205f", "\u206f" }, { "\u205e", "\u2070" } },
                { { "\u2800", "\u2800" }, { "\u27ff", "\u2801" } },
                { { "\u3000", "\u3000" }, { "\u2fff", "\u3001" } },
                { { "\u3164", "\u3164" }, { "\u3163", "\u3165" } },
                { { "\ufe00", "\ufe0f" }, { "\ufdff", "\ufe10" } },
                { { "\ufeff", "\ufeff" }, { "\ufefe", "\uff00" } },
                { { "\uffa0", "\uffa0" }, { "\uff9f", "\uffa1" } },
                { { "\ufff0", "\ufffb" }, { "\uffef", "\ufffc" } },
                { { "\U0001bca0", "\U0001bca3" }, { "\U0001bc9f", "\U0001bca4" } },
                { { "\U0001d173", "\U0001d17a" }, { "\U0001d172", "\U0001d17b" } },
                { { "\U000e0000", "\U000e0fff" }, { "\U000dffff", "\U000e1000" } },
        };
        char buf[64];

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(ranges); i++)
                for (size_t end = 0; end < 2; end++) {
                        const char *hidden = ranges[i].hidden[end], *beside = ranges[i].beside[end];

                        assert_int_equal(str_visible(hidden, buf, sizeof(buf))[0], '\\');
                        assert_null(str_word(hidden));
                        assert_string_equal(str_visible(beside, buf, sizeof(buf)), beside);
                        assert_string_equal(str_quote(beside, buf, sizeof(buf)), beside);
                }
}

static void test_a_word_is_one_to_a_shell(void **state) {
        static const struct {
                const char *text, *word;
        } cases[] = {
                { "/home/you/a-b_c.d", "/home/you/a-b_c.d" },
                { "", "''" },
                { "a b", "'a b'" },
                { "x;touch${IFS}y", "'x;touch${IFS}y'" },
                { "it's", "'it'\\''s'" },
                { "~", "'~'" },
                { "\u00e4", "'\u00e4'" },
                { "a\nb", NULL },
                { "\\'; touch x; echo \\'", NULL }, /* fish runs that */
                { "a\\", NULL },
                { "a\u202eb", NULL },
                { "a\033[m", NULL },
                { "\xff", NULL },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *word = str_word(cases[i].text);

                if (cases[i].word)
                        assert_string_equal(word, cases[i].word);
                else
                        assert_null(word);
        }
}

static void test_utf8(void **state) {
        static const struct {
                const char *text;
                bool valid;
                size_t unfinished;
        } cases[] = {
                { "", true, 0 },
                { "a\xc3\xb1\xe2\x82\xac\xf0\x9f\x98\x80", true, 0 },
                { "a\xc3", false, 1 },
                { "a\xe2\x82", false, 2 },
                { "\xf0\x9f\x98", false, 3 },
                { "\xe9", false, 1 },
                { "\xe9 a", false, 0 },
                { "\x82\xac", false, 0 },
                { "\xff", false, 1 },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *text = cases[i].text;

                if (utf8_valid(text) != cases[i].valid ||
                    utf8_unfinished(text, strlen(text)) != cases[i].unfinished)
                        fail_msg("%zu: %zu", i, utf8_unfinished(text, strlen(text)));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_durations),
                cmocka_unit_test(test_bytes),
                cmocka_unit_test(test_whole_numbers),
                cmocka_unit_test(test_quoting_untrusted_text),
                cmocka_unit_test(test_lists),
                cmocka_unit_test(test_errors_say_what_and_how),
                cmocka_unit_test(test_invisible_characters_are_escaped),
                cmocka_unit_test(test_neighbours_of_invisible_characters_stay),
                cmocka_unit_test(test_a_word_is_one_to_a_shell),
                cmocka_unit_test(test_utf8),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
