/* SPDX-License-Identifier: Apache-2.0 */
/* Tests gateway/frames.h: credentials in the frames of a WebSocket. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/frames.h"

static const char secret[] = "sk-secret-01";

/* Feeds bytes in two pieces, and expects the same output wherever they are cut. Everything must
 * have come before more bytes follow. */
static void expect(const char *bytes, size_t length, const char *wanted) {
        for (size_t cut = 0; cut <= length; cut++) {
                Scrub scrub = { 0 };
                FrameReader frames = { 0 };
                Buffer out = { 0 };
                char got[70000];

                assert_int_equal(scrub_add(&scrub, secret), 0);
                assert_int_equal(frames_feed(&frames, &scrub, bytes, cut, &out), 0);
                assert_int_equal(frames_feed(&frames, &scrub, bytes + cut, length - cut, &out), 0);
                assert_int_equal(buffer_take(&out, got, sizeof(got)), length);
                assert_memory_equal(got, wanted, length);
                buffer_clear(&out);
                scrub_clear(&scrub);
        }
}

static void test_a_secret_in_a_frame_is_masked(void **state) {
        static const char bytes[] = "\x81\x0e"
                                    "a sk-secret-01\x82\x0c"
                                    "sk-secret-01\x88";
        static const char wanted[] = "\x81\x0e"
                                     "a ************\x82\x0c************\x88";

        (void)state;
        expect(bytes, sizeof(bytes) - 1, wanted);
}

static void test_nothing_waits_at_the_end_of_a_frame(void **state) {
        (void)state;
        expect("\x81\x05xx sk", 7, "\x81\x05xx sk");
        expect("\x81\x05xx sk\x89", 8, "\x81\x05xx sk\x89");
        expect("\x88", 1, "\x88");
}

static void test_long_frames(void **state) {
        char bytes[600] = "\x82\x7e\x01\x00", wanted[600];

        (void)state;
        memset(bytes + 4, 'x', 256);
        memcpy(bytes + 248, secret, 12);
        memcpy(bytes + 260, "\x82\x7f\0\0\0\0\0\0\x01\x00", 10);
        memset(bytes + 270, 'y', 256);
        memcpy(wanted, bytes, sizeof(bytes));
        memset(wanted + 248, '*', 12);
        expect(bytes, 526, wanted);
}

static void test_frames_that_no_service_may_send(void **state) {
        static const struct {
                const char *bytes;
                size_t length;
        } bad[] = { { "\x81\x85", 2 }, { "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10 } };

        (void)state;
        for (size_t i = 0; i < 2; i++) {
                Scrub scrub = { 0 };
                FrameReader frames = { 0 };
                Buffer out = { 0 };

                assert_int_equal(frames_feed(&frames, &scrub, bad[i].bytes, bad[i].length, &out),
                                 -EPROTO);
                buffer_clear(&out);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_secret_in_a_frame_is_masked),
                cmocka_unit_test(test_nothing_waits_at_the_end_of_a_frame),
                cmocka_unit_test(test_long_frames),
                cmocka_unit_test(test_frames_that_no_service_may_send),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
