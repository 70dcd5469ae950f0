/* SPDX-License-Identifier: Apache-2.0 */
/* Tests gateway/scrub.h: credentials in a stream of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/scrub.h"

static const char secret[] = "sk-secret-01";

/* Feeds text in two pieces, and expects the same output wherever it is cut. */
static void expect(Scrub *scrub, const char *text, const char *wanted) {
        const size_t length = strlen(text);

        for (size_t cut = 0; cut <= length; cut++) {
                Buffer out = { 0 };
                char got[256] = "";

                assert_int_equal(scrub_feed(scrub, text, cut, false, &out), 0);
                assert_int_equal(scrub_feed(scrub, text + cut, length - cut, true, &out), 0);
                assert_int_equal(buffer_take(&out, got, sizeof(got) - 1), length);
                assert_string_equal(got, wanted);
                buffer_clear(&out);
        }
}

static void test_a_secret_is_masked_wherever_a_piece_ends(void **state) {
        Scrub scrub = { 0 };

        (void)state;
        assert_int_equal(scrub_add(&scrub, secret), 0);
        expect(&scrub, "a sk-secret-01 b", "a ************ b");
        expect(&scrub, "sk-secret-01sk-secret-01", "************************");
        expect(&scrub, "sk-sk-secret-01", "sk-************");
        expect(&scrub, "<c2stc2VjcmV0LTAx>", "<****************>");
        expect(&scrub, "sk-secret-0", "sk-secret-0");
        expect(&scrub, "", "");
        scrub_clear(&scrub);
}

/* One is the beginning of the next, whose end is the beginning of the last. */
static void test_secrets_that_overlap(void **state) {
        Scrub scrub = { 0 };

        (void)state;
        assert_int_equal(scrub_add(&scrub, "secret"), 0);
        assert_int_equal(scrub_add(&scrub, "secret-0123"), 0);
        assert_int_equal(scrub_add(&scrub, "0123456789"), 0);
        expect(&scrub, "<secret-0123>", "<***********>");
        expect(&scrub, "<secret-012>", "<******-012>");
        expect(&scrub, "<secret-0123456789>", "<*****************>");
        expect(&scrub, "<secret-012345678>", "<***********45678>");
        expect(&scrub, "<secretsecret>", "<************>");
        scrub_clear(&scrub);
}

static void test_nothing_is_held_back_without_need(void **state) {
        Scrub scrub = { 0 };
        Buffer out = { 0 };

        (void)state;
        assert_int_equal(scrub_add(&scrub, secret), 0);
        assert_int_equal(scrub_feed(&scrub, "data: 1\n\n", 9, false, &out), 0);
        assert_int_equal(out.length, 9);
        assert_int_equal(scrub_feed(&scrub, "sk-", 3, false, &out), 0);
        assert_int_equal(out.length, 9);
        assert_int_equal(scrub_feed(&scrub, "x", 1, false, &out), 0);
        assert_int_equal(out.length, 13);
        buffer_clear(&out);
        scrub_clear(&scrub);
}

static void test_short_secrets_are_left_alone(void **state) {
        Scrub scrub = { 0 };
        char text[] = "a short one is not masked: abc";

        (void)state;
        assert_int_equal(scrub_add(&scrub, "abc"), 0);
        scrub_text(&scrub, text);
        assert_string_equal(text, "a short one is not masked: abc");
        scrub_clear(&scrub);
}

/* Text and secrets of few letters, so that beginnings, ends and repetitions meet often. */
static void fill(char *ret, size_t length, unsigned *seed, unsigned letters) {
        for (size_t i = 0; i < length; i++) {
                *seed = *seed * 1103515245 + 12345;
                ret[i] = (char)('a' + (*seed >> 16) % letters);
        }
        ret[length] = '\0';
}

static void mask_simply(const Scrub *scrub, const char *text, char *ret) {
        memcpy(ret, text, strlen(text) + 1);
        for (size_t i = 0; i < scrub->count; i++)
                for (const char *at = text; (at = strstr(at, scrub->patterns[i])); at++)
                        memset(ret + (at - text), '*', strlen(scrub->patterns[i]));
}

static void test_the_search_finds_what_a_simple_one_finds(void **state) {
        unsigned seed = 1;

        (void)state;
        for (unsigned round = 0; round < 2000; round++) {
                const size_t lengths[] = { 6 + round % 5, 6 + round % 23, round % 7 ? 9 : 300 };
                char text[1024], wanted[sizeof(text)];
                Scrub scrub = { 0 };

                for (size_t i = 0; i < 3; i++) {
                        char one[512];

                        fill(one, lengths[i], &seed, 1 + round % 3);
                        assert_int_equal(scrub_add(&scrub, one), 0);
                        fill(text + i * 300, 300, &seed, 1 + round % 3);
                        memcpy(text + i * 300 + round % 290 / (i + 1), one,
                               lengths[i] < 300 ? lengths[i] : 10);
                }
                mask_simply(&scrub, text, wanted);
                scrub_text(&scrub, text);
                assert_string_equal(text, wanted);
                scrub_clear(&scrub);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_secret_is_masked_wherever_a_piece_ends),
                cmocka_unit_test(test_secrets_that_overlap),
                cmocka_unit_test(test_nothing_is_held_back_without_need),
                cmocka_unit_test(test_short_secrets_are_left_alone),
                cmocka_unit_test(test_the_search_finds_what_a_simple_one_finds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
