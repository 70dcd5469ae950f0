/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "egress/pump.h"
#include "wire/socket-address.h"

enum { ROOM = 1 << 20 };

/* The sender's socket, the two of the pump, and the receiver's. */
typedef struct Line {
        int sender, receiver, epoll_fd;
        Pipes *pipes;
        Pump pump;
} Line;

static void make_pair(int ret[2]) {
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t length = sizeof(address);
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
        socket_set_stream(listener);
        assert_int_equal(listen(listener, 1), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
        ret[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(ret[0], (struct sockaddr *)&address, length), 0);
        ret[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        assert_true(ret[1] >= 0);
        close(listener);
}

static void watch(const Line *line, int fd, uint32_t events) {
        struct epoll_event event = { .events = events | EPOLLET, .data.fd = fd };

        assert_int_equal(epoll_ctl(line->epoll_fd, EPOLL_CTL_ADD, fd, &event), 0);
}

static void line_make(Line *line) {
        int in[2], out[2];

        make_pair(in);
        make_pair(out);
        *line = (Line){ .sender = in[0],
                        .receiver = out[0],
                        .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
                        .pipes = pipes_new() };
        line->pump = (Pump){
                .from = in[1], .to = out[1], .pipe = { FD_NONE, FD_NONE }, .writable = true
        };
        watch(line, in[1], EPOLLIN | EPOLLPRI | EPOLLRDHUP);
        watch(line, out[1], EPOLLOUT);
}

static void line_clear(Line *line) {
        pump_clear(&line->pump, line->pipes);
        close(line->sender);
        close(line->receiver);
        close(line->pump.from);
        close(line->pump.to);
        close(line->epoll_fd);
        free(line->pipes);
}

/* Waits up to `msec` for events, and tells the pump of them, as connection-move.c does. */
static void line_note(Line *line, int msec) {
        struct epoll_event events[2];
        int n = epoll_wait(line->epoll_fd, events, 2, msec);

        for (int i = 0; i < n; i++) {
                const uint32_t now = events[i].events;

                if (events[i].data.fd == line->pump.to) {
                        line->pump.writable = true;
                        continue;
                }
                line->pump.readable = true;
                line->pump.urgent |= (now & EPOLLPRI) != 0;
                line->pump.ending |= (now & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
        }
}

/* Runs turns until the pump needs another event. Returns the result of the last turn. */
static int line_run(Line *line, int msec, bool last) {
        int r;

        line_note(line, msec);
        do
                r = pump_run(&line->pump, line->pipes, last);
        while (r == PUMP_BUSY);
        return r;
}

/* Waits until the receiver has `length` bytes, or the end of the stream. Returns their number. */
static size_t line_receive(Line *line, char *data, size_t length) {
        struct pollfd fd = { .fd = line->receiver, .events = POLLIN };
        size_t have = 0;

        while (have < length) {
                ssize_t n = 0;

                (void)line_run(line, 0, false);
                if (poll(&fd, 1, 10) == 0)
                        continue;
                n = recv(line->receiver, data + have, length - have, MSG_DONTWAIT);
                assert_true(n >= 0 || errno == EAGAIN);
                if (n == 0)
                        break;
                have += n > 0 ? (size_t)n : 0;
        }
        return have;
}

static void send_all(const Line *line, const char *data, size_t length, int flags) {
        assert_int_equal(send(line->sender, data, length, flags), length);
}

/* Bytes of a pattern that has no period of a power of two. */
static char pattern(size_t i) {
        return (char)(i * 7 + i / 251);
}

/* Sends a piece, as far as the kernel takes it. */
static size_t send_some(const Line *line, char *room, size_t sent, size_t length) {
        ssize_t n;

        for (size_t i = 0; i < length; i++)
                room[i] = pattern(sent + i);
        n = send(line->sender, room, length, MSG_DONTWAIT);
        return n > 0 ? (size_t)n : 0;
}

static size_t receive_some(const Line *line, char *room, size_t have, size_t length) {
        ssize_t n = recv(line->receiver, room, length, MSG_DONTWAIT);

        for (ssize_t i = 0; i < n; i++)
                if (room[i] != pattern(have + (size_t)i))
                        fail_msg("byte %zu differs", have + (size_t)i);
        return n > 0 ? (size_t)n : 0;
}

/* The pieces have all sizes. The receiver and the sender stop now and then. */
static void test_all_bytes_arrive_in_order(void **state) {
        const size_t total = 24 * (size_t)ROOM;
        size_t sent = 0, have = 0;
        char *room = malloc(ROOM);
        Line line;

        (void)state;
        srandom(1);
        line_make(&line);
        while (have < total) {
                const size_t piece = (size_t)1 << random() % 21, take = (size_t)1 << random() % 21;

                if (sent < total && random() % 4)
                        sent += send_some(&line, room, sent,
                                          piece < total - sent ? piece : total - sent);
                assert_in_range(line_run(&line, 0, false), PUMP_WAITS, PUMP_BUSY);
                if (random() % 4 || sent == total)
                        have += receive_some(&line, room, have, take);
        }
        assert_int_equal(line.pump.moved, total);
        free(room);
        line_clear(&line);
}

static void test_the_end_comes_after_all_bytes(void **state) {
        char *room = calloc(1, ROOM);
        Line line;

        (void)state;
        line_make(&line);
        send_all(&line, room, 100000, 0);
        assert_int_equal(shutdown(line.sender, SHUT_WR), 0);
        assert_int_equal(line_receive(&line, room, ROOM), 100000);
        assert_int_equal(line_run(&line, 0, false), PUMP_DONE);
        free(room);
        line_clear(&line);
}

static void test_the_last_direction_leaves_the_end_to_the_caller(void **state) {
        Line line;
        char byte;

        (void)state;
        line_make(&line);
        assert_int_equal(shutdown(line.sender, SHUT_WR), 0);
        assert_int_equal(line_run(&line, 1000, true), PUMP_DONE);
        assert_int_equal(recv(line.receiver, &byte, 1, MSG_DONTWAIT), -1);
        assert_int_equal(errno, EAGAIN);
        line_clear(&line);
}

static void test_a_limit_is_kept(void **state) {
        static const size_t limits[] = { 0, 1, 1000, 16 * 1024, 16 * 1024 + 1, 100000 };
        char *room = calloc(1, ROOM);

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(limits); i++) {
                Line line;

                line_make(&line);
                line.pump.limited = true;
                line.pump.left = limits[i];
                send_all(&line, room, 200000, 0);
                assert_int_equal(line_receive(&line, room, limits[i]), limits[i]);
                assert_int_equal(line_run(&line, 50, false), PUMP_WAITS);
                assert_int_equal(line.pump.moved, limits[i]);
                assert_int_equal(line.pump.left, 0);
                line_clear(&line);
        }
        free(room);
}

static void test_an_urgent_byte_is_like_others(void **state) {
        char data[5];

        (void)state;
        for (int bulk = 0; bulk <= 1; bulk++) {
                Line line;

                line_make(&line);
                line.pump.bulk = bulk;
                send_all(&line, "ab", 2, 0);
                send_all(&line, "!", 1, MSG_OOB);
                send_all(&line, "cd", 2, 0);
                assert_int_equal(line_receive(&line, data, sizeof(data)), sizeof(data));
                assert_memory_equal(data, "ab!cd", sizeof(data));
                line_clear(&line);
        }
}

static void test_an_urgent_byte_comes_before_the_end(void **state) {
        char data[5];

        (void)state;
        for (int bulk = 0; bulk <= 1; bulk++) {
                Line line;

                line_make(&line);
                line.pump.bulk = bulk;
                send_all(&line, "a", 1, 0);
                send_all(&line, "!", 1, MSG_OOB);
                assert_int_equal(shutdown(line.sender, SHUT_WR), 0);
                assert_int_equal(line_receive(&line, data, sizeof(data)), 2);
                assert_memory_equal(data, "a!", 2);
                line_clear(&line);
        }
}

static void test_a_reset_is_an_error(void **state) {
        const struct linger reset = { .l_onoff = 1 };
        Line line;
        int r;

        (void)state;
        line_make(&line);
        assert_int_equal(setsockopt(line.sender, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
        close(line.sender);
        line.sender = FD_NONE;
        r = line_run(&line, 1000, false);
        assert_int_equal(r, -ECONNRESET);
        line_clear(&line);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_bytes_arrive_in_order),
                cmocka_unit_test(test_the_end_comes_after_all_bytes),
                cmocka_unit_test(test_the_last_direction_leaves_the_end_to_the_caller),
                cmocka_unit_test(test_a_limit_is_kept),
                cmocka_unit_test(test_an_urgent_byte_is_like_others),
                cmocka_unit_test(test_an_urgent_byte_comes_before_the_end),
                cmocka_unit_test(test_a_reset_is_an_error),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
