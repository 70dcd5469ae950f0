/* SPDX-License-Identifier: Apache-2.0 */
/* Tests inside/bridge.c under a flood from inside. tests/e2e/test_bridge.py and
 * tests/escape/test_bridge.py test the rest. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "inside/bridge.h"
#include "inside/tools.h"

enum {
        CONNECTIONS = 40,
        MEMBERS = 25000, /* members of a request's object: some 10 ms of work */
        PER_TURN = 20,   /* answers in one turn of the loop */
};

typedef struct World {
        char root[32];
        Loop *loop;
        Tools *tools;
        Bridge *bridge;
        int root_fd;
        LoopTimer *timer;
        int fds[CONNECTIONS];
} World;

static World world;

static void stop(void *loop) {
        loop_stop(loop);
}

static void turn(void) {
        loop_timer_set(world.timer, 1);
        assert_int_equal(loop_run(world.loop), 0);
}

static int connect_inside(void) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s" BRIDGE_SOCKET, world.root);
        assert_true(fd >= 0);
        assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
        return fd;
}

static int setup(void **state) {
        Error error;

        (void)state;
        world = (World){ .root = "/tmp/test-bridge-XXXXXX" };
        assert_non_null(mkdtemp(world.root));
        world.root_fd = open(world.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(world.root_fd >= 0);
        assert_int_equal(mkdirat(world.root_fd, "run", 0700), 0);
        assert_int_equal(mkdirat(world.root_fd, &BRIDGE_DIRECTORY[1], 0700), 0);
        assert_int_equal(loop_new(&world.loop, &error), 0);
        assert_int_equal(loop_timer_new(world.loop, stop, world.loop, &world.timer, &error), 0);
        assert_int_equal(tools_new(world.loop, NULL, &world.tools, &error), 0);
        assert_int_equal(bridge_new(world.loop, world.tools, world.root_fd, &world.bridge, &error),
                         0);
        for (int i = 0; i < CONNECTIONS; i++)
                world.fds[i] = connect_inside();
        return 0;
}

static int teardown(void **state) {
        (void)state;
        for (int i = 0; i < CONNECTIONS; i++)
                (void)close(world.fds[i]);
        (void)bridge_free(world.bridge);
        (void)tools_free(world.tools);
        (void)loop_timer_free(world.timer);
        (void)loop_free(world.loop);
        (void)unlinkat(world.root_fd, &BRIDGE_SOCKET[1], 0);
        (void)unlinkat(world.root_fd, &BRIDGE_DIRECTORY[1], AT_REMOVEDIR);
        (void)unlinkat(world.root_fd, "run", AT_REMOVEDIR);
        (void)close(world.root_fd);
        return rmdir(world.root);
}

/* Writes a line without its end. */
static void begin_line(int fd) {
        _cleanup_free_ char *line = malloc(16 * MEMBERS);
        size_t length = 0, sent = 0;

        assert_non_null(line);
        for (int i = 0; i < MEMBERS; i++)
                length += (size_t)sprintf(line + length, "%s\"%d\":1", i ? "," : "{", i);
        line[length++] = '}';
        while (sent < length) {
                ssize_t n = send(fd, line + sent, length - sent, MSG_NOSIGNAL);

                if (n > 0)
                        sent += (size_t)n;
                turn();
        }
}

static int count_answers(void) {
        int count = 0;

        for (int i = 0; i < CONNECTIONS; i++) {
                int there = 0;

                assert_int_equal(ioctl(world.fds[i], FIONREAD, &there), 0);
                count += there > 0;
        }
        return count;
}

/* Other users of the loop get a turn between a few requests, and all are answered. */
static void test_a_flood_leaves_turns_to_others(void **state) {
        int before = 0;

        (void)state;
        for (int i = 0; i < CONNECTIONS; i++)
                begin_line(world.fds[i]);
        for (int i = 0; i < 100; i++)
                turn();
        assert_int_equal(count_answers(), 0);
        for (int i = 0; i < CONNECTIONS; i++)
                assert_int_equal(send(world.fds[i], "\n", 1, MSG_NOSIGNAL), 1);
        for (int turns = 0; before < CONNECTIONS; turns++) {
                int now;

                turn();
                now = count_answers();
                assert_true(now - before < PER_TURN && turns < 1000);
                before = now;
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_flood_leaves_turns_to_others, setup,
                                                teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
