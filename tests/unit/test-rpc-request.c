/* SPDX-License-Identifier: Apache-2.0 */
/* Tests rpc/: the server's own requests, and its handling of replies. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strings.h"
#include "rpc-fixture.h"

/* Returns the only connection, found by a request on it. */
static RpcConnection *connection_of(int fd) {
        say(fd, SAY_A);
        assert_string_equal(hear(fd), SAID_A);
        assert_non_null(toy.last);
        return toy.last;
}

/* The outcome of a request: "result", or the failure. */
typedef struct Told {
        unsigned count;
        char text[300];
        bool has_error;
} Told;

static void on_answer(void *data, const RpcAnswer *answer) {
        Told *told = data;

        told->count++;
        told->has_error = answer->error != NULL;
        (void)snprintf(told->text, sizeof(told->text), "%s",
                       answer->result ? "result" : answer->why);
        assert_true(answer->result == NULL || (!answer->error && !answer->why));
}

static int ask_size(RpcConnection *c, Told *told, size_t size, RpcRequest **ret) {
        JsonWriter params = { 0 };
        _cleanup_free_ char *text = calloc(1, size + 1);
        int r;

        assert_non_null(text);
        memset(text, 'x', size);
        json_write_object(&params, NULL);
        json_write_string(&params, "a", text);
        json_write_end(&params);
        assert_int_equal(json_write_finish(&params), 0);
        r = rpc_request(c, "do.it", &params, on_answer, told, ret);
        json_write_clear(&params);
        return r;
}

static RpcRequest *ask(RpcConnection *c, Told *told) {
        RpcRequest *request = NULL;

        assert_int_equal(ask_size(c, told, 1, &request), 0);
        return request;
}

#define ASKED(id)                                                                                  \
        "{\"jsonrpc\":\"2.0\",\"id\":\"" id "\",\"method\":\"do.it\",\"params\":{\"a\":\"x\"}}\n"
#define ANSWER(id, rest) "{\"jsonrpc\":\"2.0\",\"id\":" id "," rest "}\n"

static void test_answers_come_in(void **state) {
        static const struct {
                const char *answer, *text;
                bool has_error;
        } cases[] = {
                { ANSWER("\"t1\"", "\"result\":{\"value\":1}"), "result", false },
                { ANSWER("\"t1\"", "\"result\":null"), "result", false },
                { ANSWER("\"t1\"", "\"error\":{\"code\":-1,\"message\":\"no\"}"), "no", true },
                { ANSWER("\"t1\"", "\"error\":{}"), "an error without a message", true },
                { ANSWER("\"t1\"", "\"error\":5"), "an error without a message", true },
                { ANSWER("\"t1\"", "\"result\":1,\"error\":{}"), "result", false },
                { ANSWER("\"t1\"", "\"result\":\"\\u0000\""),
                  "the reply cannot be parsed: request:1:38: \\u0000 would cut the string", false },
                { "{\"result\":1,\"id\":\"t1\"}\n", "result", false },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                int fd = toy_connect();
                Told told = { 0 };

                (void)ask(connection_of(fd), &told);
                assert_string_equal(hear(fd), ASKED("t1"));
                assert_int_equal(told.count, 0);
                say(fd, cases[i].answer);
                assert_string_equal(hear(fd), "");
                assert_int_equal(told.count, 1);
                assert_string_equal(told.text, cases[i].text);
                assert_int_equal(told.has_error, cases[i].has_error);
                /* A second reply is dropped. */
                say(fd, cases[i].answer);
                (void)hear(fd);
                assert_int_equal(told.count, 1);
                disconnect(fd);
        }
}

static void test_answers_that_nobody_waits_for(void **state) {
        static const char *const answers[] = {
                ANSWER("\"t2\"", "\"result\":1"),
                ANSWER("\"t0\"", "\"result\":1"),
                ANSWER("\"t\"", "\"result\":1"),
                ANSWER("\"x1\"", "\"result\":1"),
                ANSWER("1", "\"result\":1"),
                ANSWER("null", "\"error\":{}"),
                "{\"result\":1}\n",
        };
        int fd = toy_connect();
        Told told = { 0 };

        (void)state;
        (void)ask(connection_of(fd), &told);
        (void)hear(fd);
        for (size_t i = 0; i < ELEMENTSOF(answers); i++) {
                say(fd, answers[i]);
                assert_string_equal(hear(fd), "");
        }
        assert_int_equal(told.count, 0);
        say(fd, SAY_A);
        assert_string_equal(hear(fd), SAID_A);
        disconnect(fd);
        assert_int_equal(told.count, 1);
        assert_string_equal(told.text, "the client has disconnected");
}

static void test_in_any_order_and_cancelled(void **state) {
        int fd = toy_connect();
        RpcConnection *c = connection_of(fd);
        Told told[3] = { 0 };
        RpcRequest *second;

        (void)state;
        (void)ask(c, &told[0]);
        second = ask(c, &told[1]);
        (void)ask(c, &told[2]);
        assert_string_equal(hear(fd), ASKED("t1") ASKED("t2") ASKED("t3"));
        assert_null(rpc_request_cancel(second));
        assert_null(rpc_request_cancel(NULL));
        say(fd, ANSWER("\"t3\"", "\"result\":1") ANSWER("\"t2\"", "\"result\":1")
                        ANSWER("\"t1\"", "\"result\":1"));
        (void)hear(fd);
        assert_int_equal(told[0].count, 1);
        assert_int_equal(told[1].count, 0);
        assert_int_equal(told[2].count, 1);
        disconnect(fd);
}

/* The beginning of the reply shows its request. */
static void test_an_answer_that_is_too_long(void **state) {
        int fd = toy_connect();
        RpcConnection *c = connection_of(fd);
        const size_t size = RPC_LINE_MAX + 100;
        _cleanup_free_ char *line = malloc(size + 2);
        Told told[2] = { 0 };

        (void)state;
        assert_non_null(line);
        (void)ask(c, &told[0]);
        (void)ask(c, &told[1]);
        (void)hear(fd);
        memset(line, 'x', size);
        memcpy(line, "{\"jsonrpc\": \"2.0\", \"id\" : \"t2\", ", 32);
        line[size] = '\n';
        say_slowly(fd, line, size + 1);
        assert_string_equal(hear(fd), "");
        assert_int_equal(told[0].count, 0);
        assert_string_equal(told[1].text, "the reply is larger than 1 MiB");
        /* A client's request with the same id is no reply. */
        memcpy(line, "{\"method\":\"a\",\"id\":\"t1\",       ", 30);
        say_slowly(fd, line, size + 1);
        assert_true(str_starts(hear(fd), "{\"jsonrpc\":\"2.0\",\"id\":\"t1\",\"error\""));
        assert_int_equal(told[0].count, 0);
        disconnect(fd);
}

static void test_too_many(void **state) {
        int fd = toy_connect();
        RpcConnection *c = connection_of(fd);
        RpcRequest *request = NULL;
        Told told = { 0 };

        (void)state;
        for (int i = 0; i < RPC_CALLS_MAX; i++) {
                (void)ask(c, &told);
                (void)hear(fd);
        }
        assert_int_equal(ask_size(c, &told, 1, &request), -EBUSY);
        say(fd, ANSWER("\"t7\"", "\"result\":1"));
        (void)hear(fd);
        (void)ask(c, &told);
        disconnect(fd);
        assert_int_equal(told.count, 1 + RPC_CALLS_MAX);
}

/* The client gets no more until it reads, and later messages are not lost. */
static void test_a_client_that_does_not_read(void **state) {
        int fd = toy_connect(), r = 0;
        RpcConnection *c = connection_of(fd);
        RpcRequest *request = NULL;
        JsonWriter params = { 0 };
        Told told = { 0 };
        size_t count = 0;

        (void)state;
        while (r == 0 && ++count < 100)
                r = ask_size(c, &told, 100000, &request);
        assert_int_equal(r, -EAGAIN);
        assert_true(count > 3 && count < 30);
        json_write_object(&params, NULL);
        json_write_end(&params);
        assert_int_equal(json_write_finish(&params), 0);
        assert_int_equal(rpc_tell(c, "no.more", &params), 0);
        json_write_clear(&params);
        assert_int_equal(toy.rooms, 0);
        assert_true(drain(fd) > 100000 * (count - 1));
        assert_int_equal(toy.rooms, 1);
        (void)ask(c, &told);
        assert_string_equal(strstr(hear(fd), "do.it") ? "again" : "not", "again");
        disconnect(fd);
}

/* A client that has closed its writing end cannot answer. */
static void test_half_closed(void **state) {
        int fd = toy_connect();
        RpcConnection *c = connection_of(fd);
        RpcRequest *request = NULL;
        Told told = { 0 };

        (void)state;
        say(fd, KEEP);
        (void)ask(c, &told);
        (void)hear(fd);
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        toy_turn();
        assert_int_equal(told.count, 1);
        assert_int_equal(ask_size(c, &told, 1, &request), -EPIPE);
        toy_answer(0);
        assert_string_equal(hear(fd), RESULT("{\"i\":0}"));
        disconnect(fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, toy_setup, toy_teardown)
                TEST(answers_come_in),
                TEST(answers_that_nobody_waits_for),
                TEST(in_any_order_and_cancelled),
                TEST(an_answer_that_is_too_long),
                TEST(too_many),
                TEST(a_client_that_does_not_read),
                TEST(half_closed),
#undef TEST
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
