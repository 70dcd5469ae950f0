/* SPDX-License-Identifier: Apache-2.0 */
/* Tests rpc/: connections of any kind, their limits, and how they end. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/strings.h"
#include "rpc-fixture.h"

/* --- long lines --- */

static void test_a_line_that_is_too_long(void **state) {
        static char chunk[100000];
        int fd = toy_connect();
        struct rusage before, after;

        (void)state;
        memset(chunk, ' ', sizeof(chunk));
        (void)getrusage(RUSAGE_SELF, &before);
        for (int i = 0; i < 1000; i++)
                say_slowly(fd, chunk, sizeof(chunk));
        for (int i = 0; i < 40; i++)
                toy_turn_once();
        (void)getrusage(RUSAGE_SELF, &after);
#ifndef __SANITIZE_ADDRESS__ /* the sanitizer keeps freed memory for a while */
        assert_true(after.ru_maxrss - before.ru_maxrss < 4096); /* KiB */
#else
        (void)before;
        (void)after;
#endif
        say(fd, "\n" SAY_A);
        assert_string_equal(
                hear(fd),
                "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,"
                "\"message\":\"request: the line is longer than 1024 KiB\","
                "\"data\":{\"name\":\"invalid-request\",\"kind\":\"limit\",\"errno\":\"EMSGSIZE\","
                "\"hint\":\"Base64 is a third longer than its bytes. Write "
                "longer data to a file, in parts or through a file "
                "descriptor.\"}}}\n" SAID_A);
        disconnect(fd);
}

static void test_a_line_of_the_largest_size(void **state) {
        static char line[(1 << 20) + 1];
        int fd = toy_connect();

        (void)state;
        memset(line, ' ', sizeof(line));
        memcpy(line, SAY_A, strlen(SAY_A) - 1);
        line[sizeof(line) - 1] = '\n';
        say_slowly(fd, line, sizeof(line));
        assert_string_equal(hear(fd), SAID_A);
        disconnect(fd);
}

/* --- calls that wait --- */

static void test_answers_may_come_later_and_in_any_order(void **state) {
        int fd = toy_connect();

        (void)state;
        say(fd, KEEP KEEP SAY_A);
        assert_string_equal(hear(fd), SAID_A);
        toy_answer(1);
        toy_answer(0);
        assert_string_equal(hear(fd), RESULT("{\"i\":1}") RESULT("{\"i\":0}"));
        disconnect(fd);
        assert_int_equal(toy.calls_ended, 0);
}

static void test_a_client_dies_with_calls_pending(void **state) {
        int fd = toy_connect();

        (void)state;
        say(fd, KEEP KEEP KEEP NOTIFICATION("toy.keep", "{}"));
        toy_turn();
        toy_answer(1);
        disconnect(fd);
        assert_int_equal(toy.calls_ended, 3);
        assert_int_equal(toy.connections_ended, 1);
        assert_null(toy.kept[0]);
}

static void test_the_server_goes_with_calls_pending(void **state) {
        int fd = toy_connect();

        (void)state;
        say(fd, KEEP KEEP);
        toy_turn();
        toy.server = rpc_server_free(toy.server);
        assert_int_equal(toy.calls_ended, 2);
        assert_int_equal(toy.connections_ended, 1);
        assert_true(is_closed(fd));
        (void)close(fd);
}

static void test_too_many_calls(void **state) {
        int fd = toy_connect();

        (void)state;
        for (int i = 0; i < RPC_CALLS_MAX; i++) {
                say(fd, KEEP);
                toy_turn();
        }
        assert_int_equal(toy.kept_count, RPC_CALLS_MAX);
        say(fd, KEEP);
        assert_non_null(strstr(hear(fd), "\"code\":-32009,\"message\":\"busy: 256 requests"));
        toy_answer(7);
        assert_string_equal(hear(fd), RESULT("{\"i\":7}"));
        say(fd, SAY_A);
        assert_string_equal(hear(fd), SAID_A);
        disconnect(fd);
}

/* Waiting calls may not be large either. */
static void test_too_large_calls(void **state) {
        static char line[1000001];
        int fd = toy_connect();

        (void)state;
        memset(line, ' ', sizeof(line) - 1);
        memcpy(line, KEEP, strlen(KEEP) - 1);
        line[sizeof(line) - 2] = '\n';
        for (int i = 0; i < 5; i++)
                say_slowly(fd, line, sizeof(line) - 1);
        toy_turn();
        assert_int_equal(toy.kept_count, 4);
        assert_non_null(strstr(hear(fd), "\"code\":-32009,\"message\":\"busy: 4 requests"));
        disconnect(fd);
}

/* --- two clients --- */

static void test_a_flood_starves_nobody(void **state) {
        int flood = toy_connect(), other = toy_connect();
        size_t before;

        (void)state;
        for (int i = 0; i < 200; i++)
                say(flood, FDS_NOTIFICATION);
        say(other, SAY_A);
        before = toy.executed;
        for (int i = 0; i < 2; i++) {
                toy_turn_once();
        }
        assert_true(toy.executed - before < 50);
        {
                char buf[200];

                assert_int_equal(read(other, buf, sizeof(buf)), strlen(SAID_A));
        }
        toy_turn();
        assert_int_equal(toy.executed, 201);
        (void)close(flood);
        disconnect(other);
}

/* --- ends --- */

static void test_a_closed_writing_end_is_still_answered(void **state) {
        int fd = toy_connect();

        (void)state;
        say(fd, KEEP);
        say(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"toy.fds\"}"); /* no newline */
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        assert_string_equal(hear(fd), RESULT("{\"count\":0}"));
        assert_int_equal(rpc_server_connections(toy.server), 1);
        toy_answer(0);
        assert_string_equal(hear(fd), RESULT("{\"i\":0}"));
        assert_true(is_closed(fd));
        assert_int_equal(rpc_server_connections(toy.server), 0);
        (void)close(fd);
}

static void test_requests_of_a_client_that_left_are_executed(void **state) {
        int fd = toy_connect();

        (void)state;
        say(fd, FDS_NOTIFICATION FDS_NOTIFICATION);
        (void)close(fd);
        toy_turn();
        assert_int_equal(toy.executed, 2);
        assert_int_equal(rpc_server_connections(toy.server), 0);
}

/* --- pipes and files --- */

static void serve(int in, int out) {
        RpcConnection *connection;

        assert_int_equal(rpc_server_add(toy.server, in, out, &connection, NULL), 0);
}

static void test_pipes(void **state) {
        int in[2], out[2];

        (void)state;
        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        assert_int_equal(fcntl(out[0], F_SETFL, O_NONBLOCK), 0);
        serve(in[0], out[1]);
        say(in[1], SAY_A "{\"jsonrpc\":");
        assert_string_equal(hear(out[0]), SAID_A);
        say(in[1], "\"2.0\",\"id\":1,\"method\":\"toy.fds\"}\n" REQUEST("toy.big",
                                                                        "{\"size\":1000000}") KEEP);
        (void)close(in[1]);
        assert_int_equal(drain(out[0]), 1000000 + strlen(RESULT("{\"count\":0}")) +
                                                strlen(RESULT("{\"text\":\"\"}")));
        assert_int_equal(rpc_server_connections(toy.server), 1);
        toy_answer(0);
        assert_string_equal(hear(out[0]), RESULT("{\"i\":0}"));
        assert_int_equal(rpc_server_connections(toy.server), 0);
        (void)close(out[0]);
}

/* The server gets no signal, and its loop does not spin. */
static void test_a_pipe_whose_reader_has_gone(void **state) {
        int in[2], out[2];

        (void)state;
        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        serve(in[0], out[1]);
        (void)close(out[0]);
        say(in[1], SAY_A);
        toy_turn();
        assert_int_equal(rpc_server_connections(toy.server), 0);
        (void)close(in[1]);
}

static void test_a_terminal(void **state) {
        int pty = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), terminal;
        char heard[200] = "";
        struct termios raw;

        (void)state;
        assert_true(pty >= 0);
        assert_int_equal(grantpt(pty), 0);
        assert_int_equal(unlockpt(pty), 0);
        terminal = open(ptsname(pty), O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(terminal >= 0);
        assert_int_equal(tcgetattr(terminal, &raw), 0);
        cfmakeraw(&raw);
        assert_int_equal(tcsetattr(terminal, TCSANOW, &raw), 0);
        assert_int_equal(fcntl(pty, F_SETFL, O_NONBLOCK), 0);
        serve(terminal, fcntl(terminal, F_DUPFD_CLOEXEC, 0));
        say(pty, KEEP SAY_A);
        while (!strchr(heard, '\n')) /* the kernel delivers it later */
                (void)strncat(heard, hear(pty), sizeof(heard) - strlen(heard) - 1);
        assert_string_equal(heard, SAID_A);
        assert_int_equal(rpc_server_connections(toy.server), 1);
        (void)close(pty);
        while (rpc_server_connections(toy.server) > 0)
                toy_turn();
        assert_int_equal(toy.calls_ended, 1);
}

/* If a reply cannot carry its fds, the caller gets an error. */
static void test_a_pipe_carries_no_fds(void **state) {
        int in[2], out[2];
        RpcCall *call;

        (void)state;
        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
        assert_int_equal(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
        serve(in[0], out[1]);
        say(in[1], KEEP);
        toy_turn();
        call = TAKE_PTR(toy.kept[0]);
        json_write_uint(rpc_result(call), "fd", 0);
        rpc_reply_fds(call, (int[]){ STDERR_FILENO }, 1);
        assert_non_null(strstr(hear(out[0]),
                               "\"code\":-32001,\"message\":\"toy.keep: the reply has "
                               "file descriptors"));
        (void)close(in[1]);
        toy_turn();
        (void)close(out[0]);
}

/* A failure of the fds alone costs the reply, not the connection. */
static void test_an_fd_that_is_none(void **state) {
        int fd = toy_connect();

        (void)state;
        say(fd, KEEP);
        toy_turn();
        (void)rpc_result(toy.kept[0]);
        rpc_reply_fds(TAKE_PTR(toy.kept[0]), (int[]){ 1000 }, 1);
        assert_non_null(strstr(hear(fd), "\"errno\":\"EBADF\""));
        say(fd, SAY_A);
        assert_string_equal(hear(fd), SAID_A);
        disconnect(fd);
}

static void test_a_file_is_read_to_its_end(void **state) {
        int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), out[2];

        (void)state;
        assert_true(fd >= 0);
        for (int i = 0; i < 100; i++)
                say(fd, FDS_NOTIFICATION);
        say(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"toy.fds\"}");
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        assert_int_equal(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
        serve(fd, out[1]);
        assert_string_equal(hear(out[0]), RESULT("{\"count\":0}"));
        assert_int_equal(toy.executed, 101);
        assert_int_equal(rpc_server_connections(toy.server), 0);
        (void)close(out[0]);
}

static void test_answers_to_a_file(void **state) {
        int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), in[2], copy;
        char buf[200] = "";

        (void)state;
        assert_true(fd >= 0);
        copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
        serve(in[0], fd);
        say(in[1], SAY_A);
        toy_turn();
        assert_int_equal(pread(copy, buf, sizeof(buf), 0), strlen(SAID_A));
        assert_string_equal(buf, SAID_A);
        (void)close(in[1]);
        toy_turn();
        assert_int_equal(rpc_server_connections(toy.server), 0);
        (void)close(copy);
}

/* --- a listening socket --- */

static int listening(struct sockaddr_un *ret_address, socklen_t *ret_length) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        assert_true(fd >= 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
        assert_int_equal(listen(fd, 400), 0);
        *ret_length = sizeof(*ret_address);
        assert_int_equal(getsockname(fd, (struct sockaddr *)ret_address, ret_length), 0);
        return fd;
}

static int connect_to(const struct sockaddr_un *address, socklen_t length) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        assert_int_equal(connect(fd, (const struct sockaddr *)address, length), 0);
        assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
        return fd;
}

static void test_listens(void **state) {
        struct sockaddr_un address;
        socklen_t length;
        int fds[RPC_CONNECTIONS_MAX + 1];

        (void)state;
        assert_int_equal(rpc_server_listen(toy.server, listening(&address, &length), getuid(),
                                           RPC_PEERS_LOOK, NULL),
                         0);
        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
                fds[i] = connect_to(&address, length);
        for (size_t i = 0; i < RPC_CONNECTIONS_MAX; i++)
                say(fds[i], SAY_A);
        for (int i = 0; i < 20; i++)
                toy_turn();
        for (size_t i = 0; i < RPC_CONNECTIONS_MAX; i++)
                assert_string_equal(hear(fds[i]), SAID_A);
        assert_int_equal(rpc_server_connections(toy.server), RPC_CONNECTIONS_MAX);
        assert_non_null(strstr(hear(fds[RPC_CONNECTIONS_MAX]),
                               "\"code\":-32009,\"message\":\"256 connections are already open\""));
        assert_true(is_closed(fds[RPC_CONNECTIONS_MAX]));
        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
                (void)close(fds[i]);
        for (int i = 0; i < 20; i++)
                toy_turn();
        assert_int_equal(rpc_server_connections(toy.server), 0);
}

/* Root is always served, so only another user can be refused. */
static void test_strangers_are_not_served(void **state) {
        struct sockaddr_un address;
        socklen_t length;
        int fd, served;

        (void)state;
        assert_int_equal(rpc_server_listen(toy.server, listening(&address, &length), getuid() + 1,
                                           RPC_PEERS_LOOK, NULL),
                         0);
        fd = connect_to(&address, length);
        say(fd, SAY_A);
        served = getuid() == 0;
        assert_non_null(
                strstr(hear(fd), served ? "\"text\":\"a\"" : "this server does not serve uid"));
        (void)close(fd);
        if (getuid() != 0)
                return;
        assert_int_equal(seteuid(12345), 0);
        fd = connect_to(&address, length);
        assert_int_equal(seteuid(0), 0);
        assert_non_null(strstr(hear(fd), "\"errno\":\"EACCES\""));
        assert_true(is_closed(fd));
        (void)close(fd);
}

static void test_no_fds_are_left(void **state) {
        struct rlimit limit, none;
        struct sockaddr_un address;
        socklen_t length;
        int fd;

        (void)state;
        assert_int_equal(rpc_server_listen(toy.server, listening(&address, &length), getuid(),
                                           RPC_PEERS_LOOK, NULL),
                         0);
        fd = connect_to(&address, length);
        say(fd, SAY_A);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
        none = (struct rlimit){ 3, limit.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        assert_string_equal(hear(fd), "");
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        while (!*hear(fd))
                ;
        assert_int_equal(toy.executed, 1);
        (void)close(fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, toy_setup, toy_teardown)
                TEST(a_line_that_is_too_long),
                TEST(a_line_of_the_largest_size),
                TEST(answers_may_come_later_and_in_any_order),
                TEST(a_client_dies_with_calls_pending),
                TEST(the_server_goes_with_calls_pending),
                TEST(too_many_calls),
                TEST(too_large_calls),
                TEST(a_flood_starves_nobody),
                TEST(a_closed_writing_end_is_still_answered),
                TEST(requests_of_a_client_that_left_are_executed),
                TEST(pipes),
                TEST(a_pipe_whose_reader_has_gone),
                TEST(a_terminal),
                TEST(a_pipe_carries_no_fds),
                TEST(an_fd_that_is_none),
                TEST(a_file_is_read_to_its_end),
                TEST(answers_to_a_file),
                TEST(listens),
                TEST(strangers_are_not_served),
                TEST(no_fds_are_left),
#undef TEST
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
