/* SPDX-License-Identifier: Apache-2.0 */
/* Tests rpc/framing.c: any cutting of the bytes gives the same lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/strings.h"
#include "rpc/framing.h"

enum { MAX = 8, BUFFER_MAX = MAX + (16 << 10) };

/* The lines that came out: "line|", or "!12|" for one that is too long. */
typedef struct Heard {
        char text[256];
        uint64_t offsets[16];
        size_t count;
} Heard;

static void hear(Heard *heard, const FramingLine *line) {
        size_t used = strlen(heard->text);

        if (line->bytes)
                (void)snprintf(heard->text + used, sizeof(heard->text) - used, "%.*s|",
                               (int)line->length, line->bytes);
        else
                (void)snprintf(heard->text + used, sizeof(heard->text) - used, "!%.2s|",
                               line->head);
        heard->offsets[heard->count++] = line->offset;
}

static void feed(Framing *f, const char *bytes, size_t length, Heard *heard) {
        FramingLine line;
        size_t size;
        char *room;

        assert_int_equal(framing_room(f, &room, &size), 0);
        assert_true(size >= length);
        assert_true(f->size <= BUFFER_MAX);
        memcpy(room, bytes, length);
        framing_add(f, length);
        while (framing_next(f, &line))
                hear(heard, &line);
}

static void test_lines_come_out(void **state) {
        static const struct {
                const char *in, *out, *rest;
        } cases[] = {
                { "", "", "" },
                { "a", "", "a|" },
                { "a\n", "a|", "" },
                { "\n\n", "||", "" },
                { "a\r\nb", "a\r|", "b|" },
                { "a\nbc\ndef\ng", "a|bc|def|", "g|" },
                { "12345678\n12345678\n", "12345678|12345678|", "" },
                { "12345678", "", "12345678|" },
                { "123456789\n", "!12|", "" },
                { "123456789", "", "!12|" },
                { "a\n123456789\nb\n", "a|!12|b|", "" },
                { "1234567890123456789012345678901234567890\n1234567890\n1\n", "!12|!12|1|", "" },
                { "a\n12345678901234567890", "a|", "!12|" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                size_t length = strlen(cases[i].in);

                for (size_t step = 1; step <= length + 1; step++) {
                        Framing f = { .max = MAX };
                        Heard heard = { 0 }, rest = { 0 };
                        FramingLine line;

                        for (size_t at = 0; at < length; at += step)
                                feed(&f, cases[i].in + at, step < length - at ? step : length - at,
                                     &heard);
                        assert_string_equal(heard.text, cases[i].out);
                        while (framing_rest(&f, &line))
                                hear(&rest, &line);
                        assert_string_equal(rest.text, cases[i].rest);
                        framing_clear(&f);
                }
        }
}

/* A line of a hundred megabytes takes no more memory than the buffer of a line. */
static void test_a_long_line_costs_nothing(void **state) {
        static char chunk[10000];
        Framing f = { .max = MAX };
        Heard heard = { 0 };

        (void)state;
        memset(chunk, 'x', sizeof(chunk));
        for (int i = 0; i < 10000; i++)
                feed(&f, chunk, sizeof(chunk), &heard);
        assert_null(f.data);
        feed(&f, "\na\n", 3, &heard);
        assert_string_equal(heard.text, "!xx|a|");
        assert_int_equal(heard.offsets[1], 100000001);
        framing_clear(&f);
}

static void test_the_buffer_grows_and_goes(void **state) {
        static char line[1 << 20];
        Framing f = { .max = sizeof(line) };
        FramingLine out;

        (void)state;
        memset(line, 'x', sizeof(line));
        for (size_t at = 0; at < sizeof(line);) {
                size_t size;
                char *room;

                assert_int_equal(framing_room(&f, &room, &size), 0);
                assert_true(f.size <= 4 * (at + (16 << 10)));
                size = size < sizeof(line) - at ? size : sizeof(line) - at;
                memcpy(room, line + at, size);
                framing_add(&f, size);
                assert_false(framing_next(&f, &out));
                at += size;
        }
        {
                size_t size;
                char *room;

                assert_int_equal(framing_room(&f, &room, &size), 0);
                memcpy(room, "\nab", 3);
                framing_add(&f, 3);
                assert_true(framing_next(&f, &out));
                assert_int_equal(out.length, sizeof(line));
                assert_false(framing_next(&f, &out));
                /* The next bytes make the buffer small again. */
                assert_int_equal(framing_room(&f, &room, &size), 0);
                assert_true(f.size <= 64 << 10);
                room[0] = '\n';
                framing_add(&f, 1);
                assert_true(framing_next(&f, &out));
                assert_memory_equal(out.bytes, "ab", 2);
                assert_false(framing_next(&f, &out));
        }
        assert_null(f.data);
}

static void test_offsets_name_lines(void **state) {
        Framing f = { .max = MAX };
        Heard heard = { 0 };
        size_t size;
        char *room;

        (void)state;
        feed(&f, "ab\nc", 4, &heard);
        assert_int_equal(framing_room(&f, &room, &size), 0);
        memcpy(room, "d\n", 2);
        framing_add(&f, 2);
        assert_int_equal(framing_last_line(&f), 3);
        framing_clear(&f);

        feed(&f, "ab\nc", 4, &heard);
        assert_int_equal(framing_room(&f, &room, &size), 0);
        memcpy(room, "d\ne", 3);
        framing_add(&f, 3);
        assert_int_equal(framing_last_line(&f), 6);
        framing_clear(&f);

        feed(&f, "12345678901234567890", 20, &heard);
        feed(&f, "12345678901234567890", 20, &heard);
        assert_int_equal(framing_room(&f, &room, &size), 0);
        memcpy(room, "1", 1);
        framing_add(&f, 1);
        assert_int_equal(framing_last_line(&f), 0);
        framing_clear(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines_come_out),
                cmocka_unit_test(test_a_long_line_costs_nothing),
                cmocka_unit_test(test_the_buffer_grows_and_goes),
                cmocka_unit_test(test_offsets_name_lines),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
