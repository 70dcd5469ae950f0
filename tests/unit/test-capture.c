/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which part of a process's output is kept, and which part its watchers receive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "process/capture.h"
#include "rpc-fixture.h"

static Capture output;

static void start(size_t limit, bool keep_tail) {
        capture_init(&output, "p1", limit, keep_tail);
}

static int end(void **state) {
        (void)state;
        capture_clear(&output);
        return 0;
}

static int end_toy(void **state) {
        capture_clear(&output);
        return toy_teardown(state);
}

static void add(unsigned stream, const char *text) {
        assert_int_equal(capture_add(&output, stream, text, strlen(text), false), 0);
}

static void assert_kept(unsigned stream, const char *expected) {
        size_t length = 0;
        char *text = capture_text(&output, stream, &length);

        assert_non_null(text);
        assert_string_equal(text, expected);
        assert_int_equal(length, strlen(expected));
        assert_int_equal(output.streams[stream].kept, length);
        free(text);
}

/* Every lost byte must be counted. */
static void assert_counted(unsigned stream) {
        const CaptureStream *s = &output.streams[stream];

        assert_int_equal(s->bytes, s->kept + s->dropped + s->part_length);
}

/* --- kept output --- */

static void test_streams_are_kept_apart(void **state) {
        (void)state;
        start(100, false);
        add(0, "out");
        add(1, "err");
        add(0, " more");
        assert_kept(0, "out more");
        assert_kept(1, "err");
        assert_int_equal(output.first->seq, 1);
        assert_int_equal(output.last->seq, 3);
}

static void test_the_first_bytes(void **state) {
        (void)state;
        start(10, false);
        add(0, "0123456");
        add(0, "789abc");
        add(0, "d");
        add(1, "err");
        assert_kept(0, "0123456789");
        assert_kept(1, "err");
        assert_int_equal(output.streams[0].dropped, 4);
        assert_counted(0);
}

/* Output after a cut does not adjoin kept output. */
static void test_the_first_bytes_have_no_gap(void **state) {
        (void)state;
        start(6, false);
        add(0, "01234\xc3\xa4");
        add(0, "x");
        assert_kept(0, "01234");
        assert_int_equal(output.streams[0].dropped, 3);
        assert_counted(0);
}

static void test_the_last_bytes(void **state) {
        (void)state;
        start(10, true);
        add(0, "0123456789abcdef");
        assert_kept(0, "6789abcdef");
        add(0, "gh");
        assert_kept(0, "89abcdefgh");
        assert_int_equal(output.streams[0].dropped, 8);
        assert_counted(0);
}

static void test_the_last_bytes_of_each_stream(void **state) {
        (void)state;
        start(4, true);
        add(1, "err");
        for (int i = 0; i < 10; i++)
                add(0, "out");
        assert_kept(0, "tout");
        assert_kept(1, "err");
        add(1, "or");
        assert_kept(1, "rror");
        assert_counted(0);
        assert_counted(1);
}

static void test_the_last_bytes_begin_with_a_character(void **state) {
        (void)state;
        start(4, true);
        add(0, "ab\xe2\x82\xac"
               "cd");
        assert_kept(0, "cd");
        assert_counted(0);
}

static void test_nothing_is_kept(void **state) {
        (void)state;
        for (int tail = 0; tail < 2; tail++) {
                start(0, tail);
                add(0, "abc");
                assert_kept(0, "");
                assert_int_equal(output.streams[0].dropped, 3);
                assert_null(output.first);
                assert_null(output.last);
                capture_clear(&output);
        }
}

/* Each chunk costs more than its bytes. */
static void test_chunks_have_an_end(void **state) {
        (void)state;
        for (int tail = 0; tail < 2; tail++) {
                start(CAPTURE_KEPT, tail);
                for (int i = 0; i < CAPTURE_CHUNKS_MAX + 10; i++)
                        add(0, "x");
                assert_int_equal(output.chunks, CAPTURE_CHUNKS_MAX);
                assert_int_equal(output.first->seq, tail ? 11 : 1);
                assert_int_equal(output.streams[0].dropped, 10);
                assert_counted(0);
                capture_clear(&output);
        }
}

static void test_a_chunk_has_an_end(void **state) {
        static char large[CAPTURE_CHUNK_MAX + 1];

        (void)state;
        start(100, false);
        assert_int_equal(capture_add(&output, 0, large, sizeof(large), false), -EINVAL);
        assert_int_equal(output.streams[0].bytes, 0);
}

/* --- characters --- */

static void test_a_character_is_not_split(void **state) {
        (void)state;
        start(100, false);
        add(0, "a\xe2");
        assert_kept(0, "a");
        add(0, "\x82");
        assert_kept(0, "a");
        assert_counted(0);
        add(0, "\xac"
               "b");
        assert_kept(0, "a\xe2\x82\xac"
                       "b");
        assert_int_equal(output.next_seq, 3);
}

static void test_streams_have_their_own_characters(void **state) {
        (void)state;
        start(100, false);
        add(0, "\xc3");
        add(1, "\xa4");
        add(0, "\xa4");
        assert_kept(0, "\xc3\xa4");
        assert_kept(1, "\xa4");
}

static void test_the_end_brings_what_is_held(void **state) {
        (void)state;
        start(100, false);
        add(0, "a\xf0\x9f");
        assert_kept(0, "a");
        assert_int_equal(capture_add(&output, 0, NULL, 0, true), 0);
        assert_kept(0, "a\xf0\x9f");
        assert_counted(0);
}

static void test_flushing_keeps_incomplete_characters(void **state) {
        (void)state;
        start(100, false);
        add(0, "a\xff");
        add(1, "b\xf0\x9f");
        capture_flush(&output);
        assert_kept(0, "a\xff");
        assert_kept(1, "b\xf0\x9f");
        add(0, "c");
        assert_kept(0, "a\xff"
                       "c");
        assert_int_equal(output.next_seq, 6);
}

/* --- watchers --- */

static int watch(uint64_t seq, RpcConnection **ret) {
        int fd = toy_connect();

        say(fd, SAY_A);
        (void)hear(fd);
        *ret = toy.last;
        assert_int_equal(capture_watch(&output, *ret, seq, false), 0);
        return fd;
}

#define HEARD(seq, offset, text)                                                                   \
        "{\"jsonrpc\":\"2.0\",\"method\":\"process.output\",\"params\":{\"id\":\"p1\","            \
        "\"seq\":" seq ",\"stream\":\"stdout\",\"offset\":" offset ",\"text\":\"" text "\"}}\n"

static void test_a_watcher_hears_what_is_kept_and_what_comes(void **state) {
        RpcConnection *connection;
        int fd;

        (void)state;
        start(100, false);
        add(0, "a");
        add(0, "b");
        fd = watch(2, &connection);
        assert_string_equal(hear(fd), HEARD("2", "1", "b"));
        add(0, "c");
        assert_string_equal(hear(fd), HEARD("3", "2", "c"));
        capture_unwatch(&output, connection);
        add(0, "d");
        assert_string_equal(hear(fd), "");
        disconnect(fd);
}

static void test_a_watcher_hears_past_the_limit(void **state) {
        RpcConnection *connection;
        int fd;

        (void)state;
        start(3, false);
        fd = watch(0, &connection);
        add(0, "abcd");
        add(0, "ef");
        assert_string_equal(hear(fd), HEARD("1", "0", "abcd") HEARD("2", "4", "ef"));
        assert_kept(0, "abc");
        capture_unwatch(&output, connection);
        disconnect(fd);
}

static void test_watching_again_starts_at_the_given_chunk(void **state) {
        RpcConnection *connection;
        int fd;

        (void)state;
        start(100, false);
        add(0, "a");
        fd = watch(0, &connection);
        assert_int_equal(capture_watch(&output, connection, 1, true), 0);
        assert_string_equal(
                hear(fd), HEARD("1", "0", "a") "{\"jsonrpc\":\"2.0\",\"method\":\"process.output\","
                                               "\"params\":{\"id\":\"p1\",\"seq\":1,\"stream\":"
                                               "\"stdout\",\"offset\":0,\"base64\":\"YQ==\"}}\n");
        capture_unwatch(&output, connection);
        disconnect(fd);
}

/* A watcher gets no more until it reads, and then all kept output. */
static void test_one_that_does_not_read_goes_on_later(void **state) {
        static char large[CAPTURE_CHUNK_MAX];
        RpcConnection *connection;
        uint64_t bytes = 0;
        int fd;

        (void)state;
        memset(large, 'x', sizeof(large));
        start(CAPTURE_KEPT_MAX, false);
        fd = watch(0, &connection);
        for (int i = 0; i < 64; i++)
                assert_int_equal(capture_add(&output, 0, large, sizeof(large), false), 0);
        for (size_t n = drain(fd); n > 0; n = drain(fd)) {
                bytes += n;
                capture_pump(&output);
        }
        assert_true(bytes > 64 * sizeof(large));
        assert_true(bytes < 65 * sizeof(large));
        capture_unwatch(&output, connection);
        disconnect(fd);
}

/* A caller asks for room first, and then adds the contents of two pipes, which exceed the limit of
 * kept output. */
static void test_one_for_whom_it_is_held_misses_nothing(void **state) {
        static char large[CAPTURE_CHUNK_MAX];
        RpcConnection *connection;
        size_t bytes = 0, added = 0;
        int fd;

        (void)state;
        memset(large, 'x', sizeof(large));
        start(1000, false);
        fd = watch(0, &connection);
        capture_hold(&output, connection, true);
        for (; !capture_is_held(&output); added++)
                assert_int_equal(capture_add(&output, 0, large, sizeof(large), false), 0);
        for (size_t i = 0; i < 3; i++, added++)
                assert_int_equal(capture_add(&output, 0, large, sizeof(large), false), 0);
        for (size_t n = drain(fd); n > 0; n = drain(fd))
                bytes += n;
        assert_false(capture_is_held(&output));
        assert_true(bytes > added * sizeof(large));
        assert_true(bytes < (added + 1) * sizeof(large));
        capture_unwatch(&output, connection);
        disconnect(fd);
}

static void test_one_that_never_reads_has_an_end(void **state) {
        static char large[CAPTURE_CHUNK_MAX];
        RpcConnection *connection;
        uint64_t before;
        size_t bytes = 0;
        int fd;

        (void)state;
        memset(large, 'x', sizeof(large));
        start(1000, false);
        fd = watch(0, &connection);
        capture_hold(&output, connection, true);
        while (!capture_is_held(&output))
                assert_int_equal(capture_add(&output, 0, large, sizeof(large), false), 0);
        before = output.streams[0].bytes;
        for (int i = 0; i < 100; i++)
                assert_int_equal(capture_add(&output, 0, large, sizeof(large), false), 0);
        capture_hold(&output, connection, false);
        assert_false(capture_is_held(&output));
        for (size_t n = drain(fd); n > 0; n = drain(fd))
                bytes += n;
        assert_true(bytes < before + CAPTURE_AHEAD_MAX + 2 * sizeof(large));
        capture_unwatch(&output, connection);
        disconnect(fd);
}

static void test_watchers_have_an_end(void **state) {
        RpcConnection *connections[CAPTURE_WATCHERS_MAX], *one_more;
        int fds[CAPTURE_WATCHERS_MAX + 1];

        (void)state;
        start(100, false);
        for (size_t i = 0; i < CAPTURE_WATCHERS_MAX; i++)
                fds[i] = watch(0, &connections[i]);
        fds[CAPTURE_WATCHERS_MAX] = toy_connect();
        say(fds[CAPTURE_WATCHERS_MAX], SAY_A);
        (void)hear(fds[CAPTURE_WATCHERS_MAX]);
        one_more = toy.last;
        assert_int_equal(capture_watch(&output, one_more, 0, false), -EBUSY);
        capture_unwatch(&output, connections[7]);
        assert_int_equal(capture_watch(&output, one_more, 0, false), 0);
        for (size_t i = 0; i <= CAPTURE_WATCHERS_MAX; i++)
                (void)close(fds[i]);
        capture_clear(&output);
        toy_turn();
}

#define kept_test(f) cmocka_unit_test_teardown(f, end)
#define watch_test(f) cmocka_unit_test_setup_teardown(f, toy_setup, end_toy)

int main(void) {
        const struct CMUnitTest tests[] = {
                kept_test(test_streams_are_kept_apart),
                kept_test(test_the_first_bytes),
                kept_test(test_the_first_bytes_have_no_gap),
                kept_test(test_the_last_bytes),
                kept_test(test_the_last_bytes_of_each_stream),
                kept_test(test_the_last_bytes_begin_with_a_character),
                kept_test(test_nothing_is_kept),
                kept_test(test_chunks_have_an_end),
                kept_test(test_a_chunk_has_an_end),
                kept_test(test_a_character_is_not_split),
                kept_test(test_streams_have_their_own_characters),
                kept_test(test_the_end_brings_what_is_held),
                kept_test(test_flushing_keeps_incomplete_characters),
                watch_test(test_a_watcher_hears_what_is_kept_and_what_comes),
                watch_test(test_a_watcher_hears_past_the_limit),
                watch_test(test_watching_again_starts_at_the_given_chunk),
                watch_test(test_one_that_does_not_read_goes_on_later),
                watch_test(test_one_for_whom_it_is_held_misses_nothing),
                watch_test(test_one_that_never_reads_has_an_end),
                watch_test(test_watchers_have_an_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
