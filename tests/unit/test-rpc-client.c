/* SPDX-License-Identifier: Apache-2.0 */
/* Tests rpc/client.c: its requests, and its handling of replies. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/strings.h"
#include "policy/layers.h"
#include "rpc-fixture.h"
#include "rpc/client.h"

/* --- against a script --- */

static RpcClient *client;
static int other; /* the server's end */

static int setup(void **state) {
        int ends[2];

        (void)state;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
                return -1;
        other = ends[1];
        return rpc_client_new(ends[0], &client, NULL);
}

static int teardown(void **state) {
        (void)state;
        client = rpc_client_free(client);
        other = fd_close(other);
        return 0;
}

static void write_object(JsonWriter *w, const char *key, const char *value) {
        json_write_object(w, NULL);
        json_write_string(w, key, value);
        json_write_end(w);
        assert_int_equal(json_write_finish(w), 0);
}

/* The server sends a request, and both kinds of replies. */
static void test_answers(void **state) {
        static const char asks[] =
                "{\"jsonrpc\":\"2.0\",\"id\":\"t1\",\"method\":\"do.it\",\"params\":{}}\n"
                "{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":{}}\n";
        RpcMessage message = RPC_MESSAGE_NONE;
        JsonWriter w = { 0 };
        char buf[400] = "";
        Error error;

        (void)state;
        assert_int_equal(write(other, asks, strlen(asks)), strlen(asks));
        assert_int_equal(rpc_client_next(client, true, &message, &error), 0);
        assert_string_equal(message.method, "do.it");
        assert_string_equal(message.request, "t1");
        assert_int_equal(message.id, 0);
        rpc_message_clear(&message);
        assert_int_equal(rpc_client_next(client, true, &message, &error), 0);
        assert_null(message.request);
        rpc_message_clear(&message);
        write_object(&w, "a", "b");
        assert_int_equal(rpc_client_answer(client, "t1", &w, NULL, &error), 0);
        assert_int_equal(rpc_client_answer(client, "t2", NULL, &w, &error), 0);
        json_write_clear(&w);
        assert_true(read(other, buf, sizeof(buf) - 1) > 0);
        assert_string_equal(buf, "{\"jsonrpc\":\"2.0\",\"id\":\"t1\",\"result\":{\"a\":\"b\"}}\n"
                                 "{\"jsonrpc\":\"2.0\",\"id\":\"t2\",\"error\":{\"a\":\"b\"}}\n");
}

/* The server does not read: requests wait in order, up to a limit. */
static void test_queues(void **state) {
        static char text[1 << 20], buf[1 << 20];
        JsonWriter w = { 0 };
        size_t sent = 0, got = 0;
        ssize_t n;
        Error error;

        (void)state;
        memset(text, 'x', sizeof(text) - 1);
        write_object(&w, "a", text);
        rpc_client_queue(client);
        assert_false(rpc_client_waits(client));
        while (rpc_client_answer(client, "t1", &w, NULL, &error) == 0)
                sent++;
        assert_int_equal(error.errnum, ENOBUFS);
        assert_true(sent > 10 && sent < 20);
        assert_true(rpc_client_waits(client));
        while (rpc_client_waits(client)) {
                n = read(other, buf, sizeof(buf));
                assert_true(n > 0);
                got += (size_t)n;
                assert_int_equal(rpc_client_flush(client), 0);
        }
        while ((n = recv(other, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
                got += (size_t)n;
        assert_true(got > sent * w.length && got < sent * (w.length + 100));
        json_write_clear(&w);
}

static void test_sends(void **state) {
        JsonWriter params = { 0 };
        char buf[400] = "";
        uint64_t id = 0;

        (void)state;
        assert_int_equal(rpc_client_send(client, "a.b", NULL, NULL, 0, &id, NULL), 0);
        assert_int_equal(id, 1);
        json_write_object(&params, NULL);
        json_write_string(&params, "x", "\n");
        json_write_end(&params);
        assert_int_equal(json_write_finish(&params), 0);
        assert_int_equal(rpc_client_send(client, "c", &params, NULL, 0, &id, NULL), 0);
        assert_int_equal(id, 2);
        assert_true(read(other, buf, sizeof(buf) - 1) > 0);
        assert_string_equal(buf, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a.b\"}\n"
                                 "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"c\",\"params\":{"
                                 "\"x\":\"\\n\"}}\n");
        json_write_clear(&params);
}

static void test_takes_messages(void **state) {
        RpcMessage message;
        Error error = { 0 };

        (void)state;
        assert_int_equal(rpc_client_next(client, false, &message, &error), -EAGAIN);
        say(other, "{\"jsonrpc\":\"2.0\",\"method\":\"said\",\"params\":{\"a\":1}}\n"
                   "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"b\":2}}\n{\"jsonrpc\"");
        assert_int_equal(rpc_client_next(client, false, &message, &error), 0);
        assert_int_equal(message.id, 0);
        assert_string_equal(message.method, "said");
        assert_non_null(json_member(message.params, "a"));
        assert_null(message.result);
        assert_int_equal(message.fds[0], FD_NONE);
        rpc_message_clear(&message);
        assert_int_equal(rpc_client_next(client, true, &message, &error), 0);
        assert_int_equal(message.id, 7);
        assert_null(message.method);
        assert_non_null(json_member(message.result, "b"));
        rpc_message_clear(&message);
        assert_int_equal(rpc_client_next(client, false, &message, &error), -EAGAIN);
        other = fd_close(other);
        assert_int_equal(rpc_client_next(client, true, &message, &error), -EPIPE);
        assert_int_equal(error.kind, ERROR_PROTOCOL);
        assert_string_equal(error.text, "the server has closed the connection");
}

static void test_errors_are_as_the_server_had_them(void **state) {
        RpcMessage message;
        Error error;

        (void)state;
        say(other,
            "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32006,\"message\":\"no such "
            "file\",\"data\":{\"kind\":\"missing\",\"errno\":\"ENOENT\",\"hint\":\"Make "
            "it.\\nNow.\"}}}\n"
            "{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":1,\"message\":\"m\",\"data\":{"
            "\"kind\":\"layer\",\"errno\":\"errno 222\",\"hint\":null,\"layer\":\"seccomp\"}}"
            "}\n"
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}\n");
        assert_int_equal(rpc_client_next(client, true, &message, &error), 0);
        assert_int_equal(message.id, 3);
        assert_null(message.result);
        assert_int_equal(error.kind, ERROR_MISSING);
        assert_int_equal(error.errnum, ENOENT);
        assert_string_equal(error.text, "no such file");
        assert_string_equal(error.cure, "Make it.\nNow.");
        rpc_message_clear(&message);
        assert_int_equal(rpc_client_next(client, true, &message, &error), 0);
        assert_int_equal(error.kind, ERROR_LAYER);
        assert_int_equal(error.layer, LAYER_SECCOMP);
        assert_int_equal(error.errnum, 222);
        assert_string_equal(error.cure, "");
        rpc_message_clear(&message);
        assert_int_equal(rpc_client_next(client, true, &message, &error), 0);
        assert_int_equal(message.id, 0);
        assert_int_equal(error.kind, ERROR_SETUP);
        assert_int_equal(error.errnum, 0);
        rpc_message_clear(&message);
}

static void test_invalid_messages_are_refused(void **state) {
        static const char *const lines[] = { "x\n", "[]\n", "{}\n", "{\"id\":1}\n" };
        RpcMessage message;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                Error error;

                say(other, lines[i]);
                assert_true(rpc_client_next(client, true, &message, &error) < 0);
        }
        say(other, "{\"id\":1,\"result\":{}}\n");
        assert_int_equal(rpc_client_next(client, true, &message, NULL), 0);
        rpc_message_clear(&message);
}

static void test_the_other_side_has_gone(void **state) {
        uint64_t id;
        Error error;

        (void)state;
        other = fd_close(other);
        assert_int_equal(rpc_client_send(client, "a", NULL, NULL, 0, &id, &error), -EPIPE);
        assert_string_equal(error.text, "a: cannot send the request");
}

static void test_it_has_said_why(void **state) {
        RpcMessage message;
        Error error;

        (void)state;
        say(other, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32009,\"message\":\"256 "
                   "connections\",\"data\":{\"kind\":\"limit\",\"errno\":null,\"hint\":null}}}\n");
        other = fd_close(other);
        assert_int_equal(rpc_client_call(client, "a", NULL, NULL, 0, &message, &error), -EPIPE);
        assert_int_equal(error.kind, ERROR_LIMIT);
        assert_string_equal(error.text, "256 connections");
        assert_int_equal(rpc_client_call(client, "a", NULL, NULL, 0, &message, &error),
                         -ECONNRESET);
        assert_string_equal(error.text, "a: cannot send the request");
}

static void test_call_passes_over_notifications(void **state) {
        RpcMessage message;
        Error error;

        (void)state;
        say(other, "{\"jsonrpc\":\"2.0\",\"method\":\"said\",\"params\":{}}\n"
                   "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n"
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1}}\n"
                   "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32009,\"message\":\"256 "
                   "connections\",\"data\":{\"kind\":\"limit\",\"errno\":null,\"hint\":null}}}\n");
        assert_int_equal(rpc_client_call(client, "a", NULL, NULL, 0, &message, &error), 0);
        assert_non_null(json_member(message.result, "a"));
        rpc_message_clear(&message);
        assert_int_equal(rpc_client_call(client, "b", NULL, NULL, 0, &message, &error), -EINVAL);
        assert_int_equal(error.kind, ERROR_LIMIT);
        assert_string_equal(error.text, "256 connections");
}

/* --- against the server --- */

static void *serve(void *data) {
        (void)data;
        (void)loop_run(toy.loop);
        return NULL;
}

/* Stops the loop from its own thread. */
static void on_quit(void *data, uint32_t events) {
        (void)data;
        (void)events;
        loop_stop(toy.loop);
}

static void test_calls(void **state) {
        int fd = toy_connect(), quit[2], fds[2] = { STDERR_FILENO, STDERR_FILENO };
        RpcClient *real = NULL;
        LoopWatch *watch = NULL;
        JsonWriter params = { 0 };
        RpcMessage message;
        pthread_t thread;
        Error error;

        (void)state;
        assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
        assert_int_equal(pipe2(quit, O_CLOEXEC), 0);
        assert_int_equal(
                loop_watch(toy.loop, quit[0], 1 /* EPOLLIN */, on_quit, NULL, &watch, NULL), 0);
        assert_int_equal(rpc_client_new(fd, &real, NULL), 0);
        assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);

        json_write_object(&params, NULL);
        json_write_uint(&params, "size", 900000);
        json_write_end(&params);
        assert_int_equal(rpc_client_call(real, "toy.big", &params, NULL, 0, &message, &error), 0);
        assert_int_equal(strlen(json_string(json_member(message.result, "text"))), 900000);
        rpc_message_clear(&message);
        json_write_clear(&params);

        assert_int_equal(rpc_client_call(real, "toy.fds", NULL, fds, 2, &message, &error), 0);
        assert_true(message.fds[1] >= 0 && fcntl(message.fds[1], F_GETFD) == FD_CLOEXEC);
        assert_int_equal(message.fds[2], FD_NONE);
        (void)close(TAKE_FD(message.fds[0]));
        rpc_message_clear(&message);

        assert_int_equal(rpc_client_call(real, "toy.echo", NULL, NULL, 0, &message, &error),
                         -EINVAL);
        assert_int_equal(error.kind, ERROR_USAGE);
        assert_string_equal(error.text, "toy.echo: text is missing");

        json_write_object(&params, NULL);
        json_write_uint(&params, "size", 2000000);
        json_write_end(&params);
        assert_int_equal(rpc_client_call(real, "toy.big", &params, NULL, 0, &message, &error), 0);
        assert_int_equal(strlen(json_string(json_member(message.result, "text"))), 2000000);
        rpc_message_clear(&message);
        json_write_clear(&params);

        assert_int_equal(write(quit[1], "q", 1), 1);
        assert_int_equal(pthread_join(thread, NULL), 0);
        rpc_client_free(real);
        (void)loop_unwatch(watch);
        (void)close(quit[0]);
        (void)close(quit[1]);
}

/* A command may call a tool before its start has been answered. */
static void test_call_keeps_what_the_server_asks(void **state) {
        static const char says[] =
                "{\"jsonrpc\":\"2.0\",\"id\":\"t1\",\"method\":\"tool.call\",\"params\":{}}\n"
                "{\"jsonrpc\":\"2.0\",\"method\":\"tool.cancel\",\"params\":{}}\n"
                "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n"
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"
                "{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":{}}\n";
        static const char *const methods[] = { "tool.call", "tool.cancel", "note" };
        RpcMessage message = RPC_MESSAGE_NONE;
        Error error;

        (void)state;
        rpc_client_queue(client);
        assert_int_equal(write(other, says, strlen(says)), strlen(says));
        assert_int_equal(rpc_client_call(client, "a.b", NULL, NULL, 0, &message, &error), 0);
        assert_int_equal(message.id, 1);
        rpc_message_clear(&message);
        for (size_t i = 0; i < ELEMENTSOF(methods); i++) {
                assert_int_equal(rpc_client_next(client, false, &message, &error), 0);
                assert_string_equal(message.method, methods[i]);
                rpc_message_clear(&message);
        }
        assert_int_equal(rpc_client_next(client, false, &message, &error), -EAGAIN);
        assert_int_equal(write(other, says, strlen(says)), strlen(says));
        assert_int_equal(shutdown(other, SHUT_WR), 0);
        assert_int_equal(rpc_client_call(client, "a.b", NULL, NULL, 0, &message, &error), -EPIPE);
        /* Freeing the client frees kept requests. */
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
                TEST(sends),
                TEST(answers),
                TEST(queues),
                TEST(takes_messages),
                TEST(errors_are_as_the_server_had_them),
                TEST(invalid_messages_are_refused),
                TEST(the_other_side_has_gone),
                TEST(it_has_said_why),
                TEST(call_passes_over_notifications),
                TEST(call_keeps_what_the_server_asks),
#undef TEST
                cmocka_unit_test_setup_teardown(test_calls, toy_setup, toy_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
