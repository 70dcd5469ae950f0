/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "hello-bytes.h"

/* --- ClientHellos --- */

static void add_number(Bytes *b, size_t value, int width) {
        while (width-- > 0) {
                const uint8_t byte = (uint8_t)(value >> 8 * width);

                add(b, &byte, 1);
        }
}

static void add_extension(Bytes *b, unsigned type, const void *bytes, size_t length) {
        add_number(b, type, 2);
        add_number(b, length, 2);
        add(b, bytes, length);
}

static void add_names(Bytes *b, size_t count, const char *const *names) {
        static Bytes list;

        list.length = 0;
        for (size_t i = 0; i < count; i++) {
                add_number(&list, 0, 1);
                add_number(&list, strlen(names[i]), 2);
                add(&list, names[i], strlen(names[i]));
        }
        add_number(b, 0, 2);
        add_number(b, list.length + 2, 2);
        add_number(b, list.length, 2);
        add(b, list.at, list.length);
}

/* Makes a handshake message of these extensions; NULL means that it has no list of them. */
static void make_message(const Bytes *extensions, Bytes *ret) {
        static const uint8_t grease[] = { 0x0a, 0x0a, 0x13, 0x01 };
        size_t length = 2 + 32 + 1 + 32 + 2 + 4 + 2;

        length += extensions ? 2 + extensions->length : 0;
        ret->length = 0;
        add_number(ret, 1, 1);
        add_number(ret, length, 3);
        add_number(ret, 0x0303, 2);
        for (int i = 0; i < 32; i++)
                add_number(ret, 0x16, 1);
        add_number(ret, 32, 1);
        for (int i = 0; i < 32; i++)
                add_number(ret, 0x17, 1);
        add_number(ret, sizeof(grease), 2);
        add(ret, grease, sizeof(grease));
        add_number(ret, 0x0100, 2);
        if (extensions) {
                add_number(ret, extensions->length, 2);
                add(ret, extensions->at, extensions->length);
        }
}

/* Cuts a message into records of at most `size` bytes. */
static void make_records(const Bytes *message, size_t size, Bytes *ret) {
        ret->length = 0;
        for (size_t at = 0; at < message->length; at += size) {
                size_t part = message->length - at < size ? message->length - at : size;

                add_number(ret, 0x160301, 3);
                add_number(ret, part, 2);
                add(ret, message->at + at, part);
        }
}

/* The usual extensions around the names. */
static void make_hello(const char *name, size_t record, Bytes *ret) {
        static Bytes extensions, message;

        extensions.length = 0;
        add_extension(&extensions, 0x1a1a, "", 0); /* GREASE */
        if (name)
                add_names(&extensions, 1, &name);
        add_extension(&extensions, 0x0017, "", 0);
        add_extension(&extensions, 0x0010, "\0\3\2h2", 5);
        add_extension(&extensions, 0x3a3a, "x", 1);
        make_message(&extensions, &message);
        make_records(&message, record, ret);
}

static Bytes bytes, parts, list;

static void check_message(const Bytes *message, HelloKind kind, const char *name) {
        Hello hello;

        make_records(message, 16384, &bytes);
        hello = read_bytes(bytes.at, bytes.length);
        assert_int_equal(hello.kind, kind);
        assert_string_equal(hello.name, name);
        assert_true((hello.kind == HELLO_BAD) == (hello.why != NULL));
}

static void test_name(void **state) {
        Hello hello;

        (void)state;
        make_hello("Packages.Example.ORG", 16384, &bytes);
        hello = read_bytes(bytes.at, bytes.length);
        assert_int_equal(hello.kind, HELLO_TLS);
        assert_string_equal(hello.name, "packages.example.org");
        assert_false(hello.hidden);
        make_hello(NULL, 16384, &bytes);
        hello = read_bytes(bytes.at, bytes.length);
        assert_int_equal(hello.kind, HELLO_TLS);
        assert_string_equal(hello.name, "");
        make_message(NULL, &parts);
        check_message(&parts, HELLO_TLS, "");
}

/* Bytes after the message, such as early data, do not matter. */
static void test_bytes_after(void **state) {
        (void)state;
        make_hello("a.example", 16384, &bytes);
        add(&bytes, "\x17\3\3\0\1x", 6);
        assert_int_equal(read_bytes(bytes.at, bytes.length).kind, HELLO_TLS);
}

static void test_pieces(void **state) {
        static const size_t records[] = { 16384, 100, 7, 4, 3, 1 };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(records); i++) {
                make_hello("a.example", records[i], &bytes);
                read_slowly(&bytes, HELLO_TLS, "a.example");
                /* In two pieces, cut at each byte. */
                for (size_t cut = 0; cut < bytes.length; cut++) {
                        Hello hello = { 0 };

                        hello_read(bytes.at, cut, &hello);
                        hello_read(bytes.at, bytes.length, &hello);
                        assert_int_equal(hello.kind, HELLO_TLS);
                        assert_string_equal(hello.name, "a.example");
                }
        }
}

static void test_two_names(void **state) {
        static const char *const names[] = { "a.example", "b.example" };

        (void)state;
        list.length = 0;
        add_names(&list, 2, names);
        make_message(&list, &parts);
        check_message(&parts, HELLO_BAD, "");
        list.length = 0;
        add_names(&list, 1, names);
        add_names(&list, 1, names + 1);
        make_message(&list, &parts);
        check_message(&parts, HELLO_BAD, "");
}

static void test_bad_names(void **state) {
        static const char *const names[] = { "",
                                             "a b.example",
                                             "\xc3\xa4.example",
                                             "a..example",
                                             "::1",
                                             "a.example:443",
                                             "*.example",
                                             "user@a.example",
                                             "127.1",
                                             "2130706433",
                                             "0x7f.1" };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                list.length = 0;
                add_names(&list, 1, names + i);
                make_message(&list, &parts);
                check_message(&parts, HELLO_BAD, "");
        }
        list.length = 0;
        add_extension(&list, 0,
                      "\0\x0c\0\0\x09"
                      "a.exa\0ple",
                      14);
        make_message(&list, &parts);
        check_message(&parts, HELLO_BAD, "");
}

static void test_address(void **state) {
        const char *name = "192.0.2.1";

        (void)state;
        list.length = 0;
        add_names(&list, 1, &name);
        make_message(&list, &parts);
        check_message(&parts, HELLO_TLS, "192.0.2.1");
}

/* Each length in the extension is wrong by one, or there is another type of name. */
static void test_extensions_that_lie(void **state) {
        static const struct {
                const char *bytes;
                size_t length;
        } lies[] = {
                { "", 0 },
                { "\0", 1 },
                { "\0\0", 2 },
                { "\0\4\0\0\1", 5 },
                { "\0\5\0\0\1a", 6 },
                { "\0\3\0\0\1a", 6 },
                { "\0\4\0\0\2a", 6 },
                { "\0\4\0\0\0a", 6 },
                { "\0\4\1\0\1a", 6 },
                { "\0\4\0\0\1ax", 7 },
                { "\0\3\0\0\0", 5 },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(lies); i++) {
                list.length = 0;
                add_extension(&list, 0, lies[i].bytes, lies[i].length);
                make_message(&list, &parts);
                check_message(&parts, HELLO_BAD, "");
        }
        list.length = 0;
        add_extension(&list, 0, "\0\4\0\0\1a", 6);
        make_message(&list, &parts);
        check_message(&parts, HELLO_TLS, "a");
}

/* Each length in the message in turn is too large or too small by one. */
static void test_lengths_that_lie(void **state) {
        static const size_t lengths[] = { 1, 2, 3, 38, 72, 77, 80, 84, 85 };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(lengths); i++)
                for (int by = -1; by < 2; by += 2) {
                        Hello hello;

                        list.length = 0;
                        add_extension(&list, 0, "\0\4\0\0\1a", 6);
                        make_message(&list, &parts);
                        parts.at[lengths[i]] = (uint8_t)(parts.at[lengths[i]] + by);
                        make_records(&parts, 16384, &bytes);
                        hello = read_bytes(bytes.at, bytes.length);
                        assert_true(hello.kind == HELLO_BAD || hello.kind == HELLO_MORE);
                }
}

/* Bytes after the extensions, which the length of the message includes. */
static void test_bytes_in_the_message(void **state) {
        (void)state;
        list.length = 0;
        add_extension(&list, 0, "\0\4\0\0\1a", 6);
        make_message(&list, &parts);
        parts.at[3]++;
        add(&parts, "x", 1);
        check_message(&parts, HELLO_BAD, "");
}

static void test_hidden(void **state) {
        static const unsigned types[] = { 0xfe0d, 0xffce };
        const char *name = "cover.example";
        Hello hello;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(types); i++) {
                list.length = 0;
                add_names(&list, 1, &name);
                add_extension(&list, types[i], "secret", 6);
                make_message(&list, &parts);
                make_records(&parts, 16384, &bytes);
                hello = read_bytes(bytes.at, bytes.length);
                assert_int_equal(hello.kind, HELLO_TLS);
                assert_string_equal(hello.name, "cover.example");
                assert_true(hello.hidden);
        }
}

/* Makes a message of `size` bytes, with the name at its end. */
static void make_big(size_t size, Bytes *ret) {
        static uint8_t zeros[HELLO_MAX];
        const char *name = "a.example";
        size_t rest = size - 4 - 2 - 32 - 1 - 32 - 2 - 4 - 2 - 2 - 18 - 4;

        list.length = 0;
        add_extension(&list, 21, zeros, rest);
        add_names(&list, 1, &name);
        make_message(&list, ret);
        assert_int_equal(ret->length, size);
}

static void test_large(void **state) {
        (void)state;
        make_big(HELLO_MAX - 100, &parts);
        check_message(&parts, HELLO_TLS, "a.example");
        /* With the headers of its records, it is longer than HELLO_MAX. */
        make_big(HELLO_MAX - 10, &parts);
        check_message(&parts, HELLO_BAD, "");
        make_big(HELLO_MAX - 100, &parts);
        make_records(&parts, 100, &bytes);
        assert_int_equal(read_bytes(bytes.at, bytes.length).kind, HELLO_BAD);
        /* A length of 24 bits is refused at once. */
        assert_int_equal(read_bytes("\x16\3\1\0\4\1\xff\xff\xff", 9).kind, HELLO_BAD);
        assert_int_equal(read_bytes("\x16\3\1\0\4\1\1\0\0", 9).kind, HELLO_BAD);
}

static void test_records(void **state) {
        static const struct {
                const char *bytes;
                size_t length;
                HelloKind kind;
        } cases[] = {
                { "\x16", 1, HELLO_MORE },
                { "\x16\3", 2, HELLO_MORE },
                { "\x16\3\1\0\x10", 5, HELLO_MORE },
                { "\x16\3\1\0\x10\1", 6, HELLO_MORE },
                { "\x16\3\1\0\x10\2", 6, HELLO_BAD }, /* another message */
                { "\x16\3\1\0\0\1", 6, HELLO_BAD },   /* an empty record */
                { "\x16\3\1\x40\1\1", 6, HELLO_BAD }, /* too long */
                { "\x16\3\1\x40\0\1", 6, HELLO_MORE },
                { "\x16\3\1\0\1\1\x17\3\1\0\1\0", 12, HELLO_BAD },
                { "\x16\3\1\0\1\1\x15\3\1\0\2\1\0", 13, HELLO_BAD },
                { "\x16\3\1\0\1\1\x16\2\1\0\1\0", 12, HELLO_BAD },
                { "\x16\5\1\0\x10\1", 6, HELLO_BAD }, /* another version */
                { "\x16\0\0\0\x10\1", 6, HELLO_BAD },
                { "\x16\0\0\0\x10\2", 6, HELLO_OTHER },
                { "\x16\x10", 2, HELLO_OTHER },
                { "\x15\3\1\0\2\1\0", 7, HELLO_BAD }, /* a warning */
                { "\x15\3\1\0\2\2\0", 7, HELLO_OTHER },
                { "\x15\x40\1\0\2\1", 6, HELLO_OTHER },
                { "\x14\3\1\0\1\1", 6, HELLO_OTHER },
                { "\x17\3\1\0\1\1", 6, HELLO_OTHER },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_int_equal(read_bytes(cases[i].bytes, cases[i].length).kind, cases[i].kind);
}

static void test_ssl2(void **state) {
        static const struct {
                const char *bytes;
                size_t length;
                HelloKind kind;
        } cases[] = {
                { "\x80", 1, HELLO_MORE },          { "\x80\x2e\1", 3, HELLO_MORE },
                { "\x80\x2e\1\3\1", 5, HELLO_TLS }, { "\x80\x2e\1\0\2", 5, HELLO_TLS },
                { "\xc1\x2e\1\3\3", 5, HELLO_TLS }, { "\x80\x2e\1\0\3", 5, HELLO_OTHER },
                { "\x80\x2e\2", 3, HELLO_OTHER },   { "\xff\xfd\1", 3, HELLO_OTHER }, /* telnet */
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Hello hello = read_bytes(cases[i].bytes, cases[i].length);

                assert_int_equal(hello.kind, cases[i].kind);
                assert_string_equal(hello.name, "");
        }
}

/* --- time --- */

/* Gives the bytes one by one, and returns how many milliseconds of the processor that took. */
static long time_slowly(const Bytes *b) {
        struct timespec before, after;
        Hello hello = { 0 };

        assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before), 0);
        for (size_t length = 1; length <= HELLO_MAX; length++)
                hello_read(b->at, length, &hello);
        assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after), 0);
        assert_int_equal(hello.kind, HELLO_BAD);
        return (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
}

/* If each byte were read again each time, this would be two billion steps, which take seconds. */
static void test_time(void **state) {
        static const struct {
                const char *start, *more;
                size_t length;
        } cases[] = {
                { "\x16\3\1\0\1\1\x16\3\1\0\1\0\x16\3\1\0\1\xfe", "\x16\3\1\0\1\0", 6 },
                { "GET / HTTP/1.1\r\n", "a:b\r\n", 5 },
                { "GET / HTTP/1.1\r\n", "abcdefgh", 8 },
                { "GET /", "abcdefgh", 8 },
                { "", "abcdefgh", 8 },
                { "", "\r\n", 2 },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                bytes.length = 0;
                add(&bytes, cases[i].start, i == 0 ? 18 : strlen(cases[i].start));
                while (bytes.length < HELLO_MAX)
                        add(&bytes, cases[i].more, cases[i].length);
                assert_in_range(time_slowly(&bytes), 0, 300);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_name),
                cmocka_unit_test(test_bytes_after),
                cmocka_unit_test(test_pieces),
                cmocka_unit_test(test_two_names),
                cmocka_unit_test(test_bad_names),
                cmocka_unit_test(test_address),
                cmocka_unit_test(test_extensions_that_lie),
                cmocka_unit_test(test_lengths_that_lie),
                cmocka_unit_test(test_bytes_in_the_message),
                cmocka_unit_test(test_hidden),
                cmocka_unit_test(test_large),
                cmocka_unit_test(test_records),
                cmocka_unit_test(test_ssl2),
                cmocka_unit_test(test_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
