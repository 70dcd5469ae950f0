/* SPDX-License-Identifier: Apache-2.0 */
/* Tests rpc/: clients that do not read, and turns. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/strings.h"
#include "rpc-fixture.h"
#include "rpc/connection.h"

/* --- clients that do not read --- */

static void test_a_slow_reader_gets_everything(void **state) {
        int fd = toy_connect();

        (void)state;
        say(fd, REQUEST("toy.big", "{\"size\":3000000}"));
        say(fd, SAY_A);
        assert_int_equal(drain(fd), 3000000 + strlen(RESULT("{\"text\":\"\"}")) + strlen(SAID_A));
        disconnect(fd);
}

/* The client's requests wait, and its replies take little more than RPC_QUEUE_SOFT. */
static void test_a_client_that_does_not_read_is_not_read(void **state) {
        int fd = toy_connect();
        ssize_t n;

        (void)state;
        do {
                n = write(fd, REQUEST("toy.big", "{\"size\":100000}"),
                          strlen(REQUEST("toy.big", "{\"size\":100000}")));
                toy_turn();
        } while (n > 0);
        assert_int_equal(errno, EAGAIN);
        assert_true(toy.executed < 20);
        assert_int_equal(rpc_server_connections(toy.server), 1);
        assert_true(drain(fd) > 2000000);
        disconnect(fd);
}

static void answer_with(size_t i, size_t size) {
        _cleanup_free_ char *text = malloc(size + 1);

        assert_true(text && toy.kept[i]);
        memset(text, 'x', size);
        text[size] = '\0';
        json_write_string(rpc_result(toy.kept[i]), "text", text);
        toy_answer(i);
}

/* A reply that is too long, or that its client does not read, costs only that reply. */
static void test_an_answer_that_is_too_long(void **state) {
        int fd = toy_connect();

        (void)state;
        say(fd, KEEP KEEP);
        toy_turn();
        answer_with(0, RPC_ANSWER_MAX);
        assert_non_null(strstr(
                hear(fd),
                "\"message\":\"toy.keep: the reply has 33 MiB, and may have at most 32 MiB\""));
        answer_with(1, RPC_ANSWER_MAX - 1000);
        assert_true(drain(fd) > RPC_ANSWER_MAX - 1000);
        disconnect(fd);
}

static void test_past_the_queue_answers_are_errors(void **state) {
        const size_t size = 8 << 20;
        int fd = toy_connect();
        size_t length;

        (void)state;
        for (int i = 0; i < 16; i++)
                say(fd, KEEP);
        toy_turn();
        for (size_t i = 0; i < 16; i++)
                answer_with(i, size);
        toy_turn();
        assert_int_equal(toy.connections_ended, 0);
        length = drain(fd);
        assert_true(length > RPC_QUEUE_MAX && length < RPC_QUEUE_MAX + 2 * size);
        say(fd, SAY_A);
        assert_string_equal(hear(fd), SAID_A);
        disconnect(fd);
}

/* The result of a completed call is always sent, however little its client reads. */
static void test_a_small_answer_always_comes(void **state) {
        const size_t large = RPC_QUEUE_MAX + (1 << 20);
        int fd = toy_connect();

        (void)state;
        say(fd, KEEP KEEP KEEP KEEP);
        toy_turn();
        answer_with(0, large);
        answer_with(1, RPC_ANSWER_SMALL - 1000);
        answer_with(2, RPC_ANSWER_SMALL);
        answer_with(3, 5);
        toy_turn();
        assert_in_range(drain(fd), large + RPC_ANSWER_SMALL - 1000, large + RPC_ANSWER_SMALL);
        disconnect(fd);
}

/* Notifications that nobody asked for fill the queue. The loop closes the connection, not
 * rpc_tell(). */
static void test_past_all_bounds_it_is_closed(void **state) {
        _cleanup_free_ char *text = calloc(1, 1 << 20);
        JsonWriter params = { 0 };
        int fd = toy_connect();

        (void)state;
        say(fd, SAY_A);
        (void)drain(fd);
        memset(text, 'x', (1 << 20) - 1);
        json_write_string(&params, NULL, text);
        assert_int_equal(json_write_finish(&params), 0);
        for (size_t sent = 0; sent < (RPC_QUEUE_END >> 20) + 2; sent++)
                assert_int_equal(rpc_tell(toy.last, "toy.said", &params), 0);
        assert_int_equal(toy.connections_ended, 0);
        toy_turn();
        assert_int_equal(toy.connections_ended, 1);
        json_write_clear(&params);
        disconnect(fd);
}

static void test_notifications_stop_and_go_on(void **state) {
        JsonWriter params = { 0 };
        int fd = toy_connect();
        size_t sent = 0;

        (void)state;
        say(fd, SAY_A);
        (void)drain(fd);
        assert_non_null(toy.last);
        json_write_object(&params, NULL);
        json_write_string(&params, "text", "a");
        json_write_end(&params);
        assert_int_equal(rpc_notify(toy.last, "toy.said", &params), 0);
        assert_string_equal(hear(fd), "{\"jsonrpc\":\"2.0\",\"method\":\"toy.said\",\"params\":{"
                                      "\"text\":\"a\"}}\n");
        assert_int_equal(json_write_finish(&params), 0);
        assert_int_equal(rpc_notify(toy.last, "toy.said", &params), 0);
        assert_string_equal(hear(fd), "{\"jsonrpc\":\"2.0\",\"method\":\"toy.said\",\"params\":{"
                                      "\"text\":\"a\"}}\n");

        while (rpc_notify(toy.last, "toy.said", &params) == 0)
                assert_true(sent++ < 100000);
        assert_int_equal(rpc_notify(toy.last, "toy.said", &params), -EAGAIN);
        toy_turn();
        assert_int_equal(toy.rooms, 0);
        (void)drain(fd);
        assert_int_equal(toy.rooms, 1);
        assert_int_equal(rpc_notify(toy.last, "toy.said", &params), 0);
        (void)drain(fd);
        assert_int_equal(toy.rooms, 1);
        json_write_clear(&params);
        disconnect(fd);
}

/* A method with a large reply first asks whether the reply would have to wait. */
static void test_room_for_an_answer(void **state) {
        int fd = toy_connect();

        (void)state;
        say(fd, SAY_A);
        (void)drain(fd);
        assert_true(rpc_has_room(toy.last));
        say(fd, KEEP REQUEST("toy.big", "{\"size\":2000000}"));
        toy_turn();
        assert_false(rpc_has_room(toy.last));
        assert_false(rpc_call_has_room(toy.kept[0]));
        toy_turn();
        assert_int_equal(toy.rooms, 0);
        assert_true(drain(fd) > 2000000);
        assert_int_equal(toy.rooms, 1);
        assert_true(rpc_call_has_room(toy.kept[0]));
        disconnect(fd);
}

/* --- turns --- */

#define SLOW REQUEST("toy.slow", "{}")

/* A long call is the last of its turn, so that the next client waits for only one. */
static void test_each_client_has_its_turn(void **state) {
        int one = toy_connect(), other = toy_connect();
        char said[200];

        (void)state;
        say(one, SLOW SLOW SLOW SLOW);
        say(other, SAY_A);
        toy_turn_once();
        assert_true(toy.executed < 4);
        assert_int_equal(read(other, said, sizeof(said)), strlen(SAID_A));
        toy_turn();
        assert_int_equal(toy.executed, 5);
        (void)close(one);
        disconnect(other);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, toy_setup, toy_teardown)
                TEST(a_slow_reader_gets_everything), TEST(a_client_that_does_not_read_is_not_read),
                TEST(an_answer_that_is_too_long),    TEST(past_the_queue_answers_are_errors),
                TEST(a_small_answer_always_comes),   TEST(past_all_bounds_it_is_closed),
                TEST(notifications_stop_and_go_on),  TEST(room_for_an_answer),
                TEST(each_client_has_its_turn),
#undef TEST
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
