/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/credit.h"

enum { MOST = 3, PERIOD = 10 };

/* Takes as many as it can at one moment. */
static unsigned take_all(Credit *credit, uint64_t now) {
        unsigned taken = 0;

        while (credit_take(credit, MOST, PERIOD, now))
                taken++;
        return taken;
}

/* 0 is the moment at which the host starts. */
static void test_all_may_come_at_once(void **state) {
        static const uint64_t starts[] = { 0, 1, PERIOD, 1000000 };

        (void)state;
        for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
                Credit credit = { 0 };

                assert_int_equal(take_all(&credit, starts[i]), MOST);
        }
}

static void test_one_comes_back_in_each_period(void **state) {
        Credit credit = { 0 };

        (void)state;
        assert_int_equal(take_all(&credit, 5), MOST);
        assert_int_equal(take_all(&credit, 14), 0);
        assert_int_equal(take_all(&credit, 15), 1);
        assert_int_equal(take_all(&credit, 34), 1);
        assert_int_equal(take_all(&credit, 35), 1);
        assert_int_equal(take_all(&credit, 1000), MOST);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_may_come_at_once),
                cmocka_unit_test(test_one_comes_back_in_each_period),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
