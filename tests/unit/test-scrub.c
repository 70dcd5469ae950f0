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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_secret_is_masked_wherever_a_piece_ends),
                cmocka_unit_test(test_secrets_that_overlap),
                cmocka_unit_test(test_nothing_is_held_back_without_need),
                cmocka_unit_test(test_short_secrets_are_left_alone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
