/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>

#include <cmocka.h>

#include "outcome/outcome.h"

enum { EXITED_3 = 3 << 8 }; /* wait(2): the exit code stands above the signal */

static const struct {
        Ending ending;
        Cause cause;
        int signal, exit_code;
} endings[] = {
        { { .reported = true }, CAUSE_EXITED, 0, 0 },
        { { .reported = true, .status = EXITED_3 }, CAUSE_EXITED, 0, 3 },
        { { .reported = true, .status = EXITED_3, .told_to_stop = true }, CAUSE_EXITED, 0, 3 },
        { { .reported = true, .status = SIGTERM }, CAUSE_SIGNALED, SIGTERM, 143 },
        { { .reported = true, .status = SIGSEGV | 0x80 }, CAUSE_SIGNALED, SIGSEGV, 139 },
        { { .reported = true, .status = SIGTERM, .told_to_stop = true },
          CAUSE_KILLED,
          SIGTERM,
          143 },
        { { .reported = true, .status = SIGKILL, .oom = true }, CAUSE_OOM, SIGKILL, 137 },
        { { .reported = true, .status = SIGTERM, .oom = true }, CAUSE_SIGNALED, SIGTERM, 143 },
        { { .reported = true, .timed_out = true }, CAUSE_TIMEOUT, 0, 124 },
        { { .reported = true, .status = SIGKILL, .timed_out = true, .told_to_stop = true },
          CAUSE_TIMEOUT,
          SIGKILL,
          124 },
        { { .reported = true, .output_passed = true }, CAUSE_OUTPUT_LIMIT, 0, 143 },
        { { .reported = true, .status = SIGKILL, .output_passed = true },
          CAUSE_OUTPUT_LIMIT,
          SIGKILL,
          137 },
        { { .reported = true, .undelivered = SIGINT }, CAUSE_KILLED, 0, 130 },
        { { .reported = false }, CAUSE_LOST, SIGKILL, 137 },
        { { .reported = false, .told_to_stop = true }, CAUSE_KILLED, SIGKILL, 137 },
        { { .reported = false, .timed_out = true }, CAUSE_TIMEOUT, SIGKILL, 124 },
        { { .reported = false, .oom = true }, CAUSE_OOM, SIGKILL, 137 },
};

static void test_conclude(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(endings); i++) {
                Outcome outcome = { 0 };

                outcome_conclude(&outcome, &endings[i].ending);
                assert_string_equal(cause_name(outcome.cause), cause_name(endings[i].cause));
                assert_int_equal(outcome.signal, endings[i].signal);
                assert_int_equal(outcome.exit_code, endings[i].exit_code);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_conclude) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
