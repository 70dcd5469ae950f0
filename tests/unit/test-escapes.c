/* SPDX-License-Identifier: Apache-2.0 */
/* Tests runner/base/escapes.c: harmless control sequences pass, others become visible. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/escapes.h"

typedef struct Case {
        const char *text, *shown; /* shown: NULL if it equals text */
        bool asks;
} Case;

static const Case utf8_cases[] = {
        { "plain\r\n\ttext\b\a", NULL, false },
        { "\033[1;31mred\033[0m\033[K\033[2J\033[3;4H\033[38:2:1:2:3mx", NULL, false },
        { "\033[?25l\033[?25h\0337\0338\033M\033(B", NULL, false },
        { "\303\251\342\200\223\342\234\223\360\237\230\200\302\240", NULL, false },
        /* Questions. */
        { "\033[21t", "\\x1b[21t", true },
        { "\033[6n.", "\\x1b[6n.", true },
        { "\033[c", "\\x1b[c", true },
        { "\033[?25c", "\\x1b[?25c", true },
        { "\033[?1000h", "\\x1b[?1000h", true },
        { "\033[?2", "", false },
        { "\033[1?25h", "\\x1b[1?25h", true },
        { "\033[2$p", "\\x1b[2$p", true },
        { "\033]10;?\a", "\\x1b]10;?\a", true },
        { "\033P+q\033\\", "\\x1bP+q\\x1b\\", true },
        { "\033Z\033_G\033^", "\\x1bZ\\x1b_G\\x1b^", true },
        { "\005", "\\x05", true },
        /* Terminals ignore control characters in a sequence, or obey them and continue the
         * sequence. */
        { "\033[2\n1t", "\\x1b[2\n1t", true },
        { "\033[2\03061t", "\\x1b[2\\x1861t", true },
        { "\033\033[21t", "\\x1b\\x1b[21t", true },
        { "\033[2\033[21t", "\\x1b[2\\x1b[21t", true },
        { "\033(\033[6n", "\\x1b(\\x1b[6n", true },
        /* C1 controls. */
        { "\302\2336n", "\302\\x9b6n", true },
        { "\2336n", "\\x9b6n", true },
        { "\303\251\2336n", "\303\251\\x9b6n", true },
        { "\340\200\302\2336n", "\340\200\302\\x9b6n", true },
        { "\033[11111111111111111111111111111111m", "\\x1b[11111111111111111111111111111111m",
          true },
        { "\016\177\030", "\\x0e\\x7f\\x18", false },
};

static const Case byte_cases[] = {
        { "\351", NULL, false },
        { "\304\2336n", "\304\\x9b6n", true },
        { "\342\200\223", "\342\\x80\\x93", true },
};

static void check(const Case *c, bool utf8, size_t step) {
        Escapes asks = { .utf8 = utf8 }, disarms = { .utf8 = utf8 };
        const size_t size = strlen(c->text);
        const char *shown = c->shown ? c->shown : c->text;
        char out[ESCAPES_GROWTH * (256 + ESCAPES_HELD)];
        bool asked = false;
        size_t n = 0;

        for (size_t at = 0; at < size; at += step) {
                const size_t part = size - at < step ? size - at : step;

                asked |= escapes_ask(&asks, c->text + at, part);
                n += escapes_disarm(&disarms, c->text + at, part, out + n);
        }
        if (asked != c->asks || n != strlen(shown) || memcmp(out, shown, n) != 0)
                fail_msg("%s: %d, %.*s", shown, asked, (int)n, out);
}

static void test_each_sequence(void **state) {
        (void)state;
        for (size_t step = 1; step < 8; step++) {
                for (size_t i = 0; i < sizeof(utf8_cases) / sizeof(*utf8_cases); i++)
                        check(&utf8_cases[i], true, step);
                for (size_t i = 0; i < sizeof(byte_cases) / sizeof(*byte_cases); i++)
                        check(&byte_cases[i], false, step);
        }
}

static void test_disarmed_text_asks_nothing(void **state) {
        const char *const parts[] = { "\033", "[",    "2",    "?", "5", "h", "m",  "n", "\302",
                                      "\233", "\303", "\005", "(", "B", "]", "\n", "x" };
        enum { PARTS = sizeof(parts) / sizeof(*parts) };

        (void)state;
        for (unsigned number = 0; number < PARTS * PARTS * PARTS * PARTS; number++) {
                Escapes disarms = { .utf8 = true }, asks = { .utf8 = true };
                char text[16] = "", out[ESCAPES_GROWTH * (16 + ESCAPES_HELD)];
                size_t n;

                for (unsigned i = 0, rest = number; i < 4; i++, rest /= PARTS)
                        (void)strcat(text, parts[rest % PARTS]);
                n = escapes_disarm(&disarms, text, strlen(text), out);
                if (escapes_ask(&asks, out, n) || escapes_open(&asks))
                        fail_msg("%u: %.*s", number, (int)n, out);
        }
}

static void test_growth_is_bounded(void **state) {
        Escapes e = { 0 };
        char text[1000], out[ESCAPES_GROWTH * (sizeof(text) + ESCAPES_HELD)];

        (void)state;
        memset(text, 0x9b, sizeof(text));
        assert_true(escapes_disarm(&e, text, sizeof(text), out) <= sizeof(out));
        memset(text, 0, sizeof(text));
        assert_int_equal(escapes_disarm(&e, text, sizeof(text), out), 4 * sizeof(text));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_sequence),
                cmocka_unit_test(test_disarmed_text_asks_nothing),
                cmocka_unit_test(test_growth_is_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
