/* SPDX-License-Identifier: Apache-2.0 */
/* Tests rpc/: fds that travel with lines, and that none is left open. */
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
#include <unistd.h>

#include <cmocka.h>

#include "base/strings.h"
#include "rpc-fixture.h"

/* Sends text with count copies of an fd. */
static void say_with(int fd, const char *text, size_t count) {
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(8 * sizeof(int))];
        } control = { 0 };
        struct iovec iov = { (void *)text, strlen(text) };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
        int fds[8];

        for (size_t i = 0; i < count; i++)
                fds[i] = STDERR_FILENO;
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
        assert_int_equal(sendmsg(fd, &message, MSG_NOSIGNAL), strlen(text));
}

/* Returns the result of one recvmsg(2), counting and closing its fds. */
static const char *hear_with(int fd, size_t *ret_count) {
        static char buf[64 << 10];
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(8 * sizeof(int))];
        } control = { 0 };
        struct iovec iov = { buf, sizeof(buf) - 1 };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
        struct cmsghdr *head;
        ssize_t n;

        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        n = recvmsg(fd, &message, 0);
        buf[n < 0 ? 0 : n] = '\0';
        *ret_count = 0;
        head = n < 0 ? NULL : CMSG_FIRSTHDR(&message);
        if (!head)
                return buf;
        *ret_count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < *ret_count; i++) {
                int got;

                memcpy(&got, CMSG_DATA(head) + i * sizeof(got), sizeof(got));
                (void)close(got);
        }
        return buf;
}

static void test_fds_belong_to_their_line(void **state) {
        int fd = toy_connect();
        size_t count;

        (void)state;
        say(fd, SAY_A);
        say_with(fd, FDS, 1);
        say(fd, SAY_A);
        toy_turn();
        assert_string_equal(hear_with(fd, &count), SAID_A RESULT("{\"count\":1}"));
        assert_int_equal(count, 1);
        assert_string_equal(hear_with(fd, &count), SAID_A);
        assert_int_equal(count, 0);

        say_with(fd, FDS, 4);
        say_with(fd, FDS, 3);
        say(fd, FDS);
        toy_turn();
        assert_string_equal(hear_with(fd, &count), RESULT("{\"count\":4}"));
        assert_int_equal(count, 2);
        assert_string_equal(hear_with(fd, &count), RESULT("{\"count\":3}"));
        assert_int_equal(count, 2);
        assert_string_equal(hear_with(fd, &count), RESULT("{\"count\":0}"));
        disconnect(fd);
}

static void test_fds_of_a_line_in_pieces(void **state) {
        int fd = toy_connect();
        size_t count;

        (void)state;
        say_with(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,", 1);
        toy_turn();
        say(fd, "\"method\":");
        toy_turn();
        say_with(fd, "\"toy.fds\"}\n", 2);
        say_with(fd, "{\"jsonrpc\":\"2.0\",", 4);
        toy_turn();
        assert_string_equal(hear_with(fd, &count), RESULT("{\"count\":3}"));
        say(fd, "\"id\":1,\"method\":\"toy.fds\"}\n");
        toy_turn();
        assert_string_equal(hear_with(fd, &count), RESULT("{\"count\":4}"));
        disconnect(fd);
}

static void test_fds_that_nobody_takes_are_closed(void **state) {
        static const char *const lines[] = {
                SAY_A,       FDS_NOTIFICATION, NOTIFICATION("none", "{}"),
                "}\n",       "[]\n",           REQUEST("toy.echo", "{}"),
                "unfinished"
        };
        int fd = toy_connect();
        size_t before = open_fds();

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                say_with(fd, lines[i], 4);
                (void)drain(fd);
                if (!streq(lines[i], "unfinished"))
                        assert_int_equal(open_fds(), before);
        }
        disconnect(fd); /* teardown counts again */
}

static void test_too_many_fds(void **state) {
        int fd = toy_connect();

        (void)state;
        say_with(fd, FDS, 5);
        assert_non_null(strstr(
                hear(fd), "\"code\":-32009,\"message\":\"the request came with more than 4 file"));
        say_with(fd, "{\"jsonrpc\":\"2.0\",", 3);
        toy_turn();
        say_with(fd, "\"id\":1,\"method\":\"toy.fds\"}\n", 2);
        assert_non_null(strstr(
                hear(fd), "\"code\":-32009,\"message\":\"the request came with more than 4 file"));
        assert_int_equal(toy.executed, 0);
        say_with(fd, FDS, 1);
        assert_string_equal(hear(fd), RESULT("{\"count\":1}"));
        disconnect(fd);
}

/* If a client stops reading replies, the number of fds in the server stays limited. */
static void test_fds_wait_with_their_line(void **state) {
        int fd = toy_connect();
        size_t with = 0, errors = 0, count;
        const char *line;

        (void)state;
        say(fd, REQUEST("toy.big", "{\"size\":900000}"));
        toy_turn();
        for (int i = 0; i < 20; i++) {
                say_with(fd, FDS, 2);
                toy_turn();
        }
        while (*(line = hear_with(fd, &count))) {
                if (count > 0) {
                        assert_int_equal(count, 2);
                        assert_true(strlen(line) >= strlen(RESULT("{\"count\":2}")));
                        with++;
                }
                errors += strstr(line, "\"code\":-32009") != NULL;
                toy_turn();
        }
        assert_int_equal(with, 16);
        assert_true(errors > 0);
        disconnect(fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, toy_setup, toy_teardown)
                TEST(fds_belong_to_their_line),         TEST(fds_of_a_line_in_pieces),
                TEST(fds_that_nobody_takes_are_closed), TEST(too_many_fds),
                TEST(fds_wait_with_their_line),
#undef TEST
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
