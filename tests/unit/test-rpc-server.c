/* SPDX-License-Identifier: Apache-2.0 */
/* rpc/: what a client of any kind gets for what it sends. */
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

#include "base/strings.h"
#include "rpc-fixture.h"

static Toy toy;

static int setup(void **state) {
        (void)state;
        toy_start(&toy);
        return 0;
}

static int teardown(void **state) {
        (void)state;
        toy_stop(&toy);
        return 0;
}

static void say(int fd, const char *text) {
        assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What has come, as a string, until the next call. */
static const char *hear(int fd) {
        static char buf[256 << 10];
        ssize_t n;

        toy_turn(&toy);
        n = recv(fd, buf, sizeof(buf) - 1, MSG_DONTWAIT);
        buf[n < 0 ? 0 : n] = '\0';
        return buf;
}

static void test_answers(void **state) {
        int fd = toy_connect(&toy);

        (void)state;
        say(fd,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"toy.echo\",\"params\":{\"text\":\"a\"}}\n");
        assert_string_equal(hear(fd), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"text\":\"a\","
                                      "\"loud\":true,\"times\":7,\"has_times\":false}}\n");
        (void)close(fd);
        toy_turn(&toy);
        assert_int_equal(toy.connections_ended, 1);
        assert_int_equal(rpc_server_connections(toy.server), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_answers, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
