/* SPDX-License-Identifier: Apache-2.0 */
/* Tests base/loop.c: which callbacks run, in which order, and which do not run any more. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/loop.h"

static Loop *loop;
static LoopTimer *stop;

static void stop_loop(void *data) {
        (void)data;
        loop_stop(loop);
}

static int setup(void **state) {
        (void)state;
        return loop_new(&loop, NULL) < 0 || loop_timer_new(loop, stop_loop, NULL, &stop, NULL) < 0;
}

static int teardown(void **state) {
        (void)state;
        loop = loop_free(loop);
        return 0;
}

/* Runs one turn: everything that is ready or due. */
static void turn(void) {
        loop_timer_set(stop, 1);
        assert_int_equal(loop_run(loop), 0);
}

/* --- watches --- */

typedef struct Side {
        int fd, other;
        LoopWatch *watch;
        int count;
        uint32_t events;
        struct Side *victim; /* the side whose watch it removes */
        uint32_t set;        /* the victim's new events, if not 0; then the watch stays */
} Side;

static void on_event(void *data, uint32_t events) {
        Side *side = data;

        side->count++;
        side->events = events;
        if (side->victim && side->set)
                loop_watch_set(side->victim->watch, side->set);
        else if (side->victim)
                side->victim->watch = loop_unwatch(side->victim->watch);
}

static void side_open(Side *side, uint32_t events) {
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        *side = (Side){ .fd = fds[0], .other = fds[1] };
        assert_int_equal(loop_watch(loop, side->fd, events, on_event, side, &side->watch, NULL), 0);
}

static void side_close(Side *side) {
        side->watch = loop_unwatch(side->watch);
        side->fd = fd_close(side->fd);
        side->other = fd_close(side->other);
}

static void test_hands_events_out(void **state) {
        Side side;

        (void)state;
        side_open(&side, EPOLLIN);
        turn();
        assert_int_equal(side.count, 0);
        assert_int_equal(write(side.other, "a", 1), 1);
        turn();
        turn();
        assert_int_equal(side.count, 2);
        assert_int_equal(side.events, EPOLLIN);
        loop_watch_set(side.watch, EPOLLOUT);
        turn();
        assert_int_equal(side.events, EPOLLOUT);
        loop_watch_set(side.watch, 0);
        turn();
        assert_int_equal(side.count, 3);
        side.other = fd_close(side.other);
        turn();
        assert_int_equal(side.count, 4);
        assert_true(side.events & EPOLLHUP);
        side_close(&side);
}

static void test_its_own_watch_may_go(void **state) {
        Side side;

        (void)state;
        side_open(&side, EPOLLIN);
        side.victim = &side;
        assert_int_equal(write(side.other, "a", 1), 1);
        turn();
        turn();
        assert_int_equal(side.count, 1);
        side_close(&side);
}

/* Both sides are ready in one turn. The callback of the first side sets the events of the second,
 * or removes its watch if `set` is 0. The second side must then get no call. */
static void check_victim(uint32_t set) {
        Side a, b;

        side_open(&a, EPOLLOUT);
        side_open(&b, EPOLLOUT);
        a.victim = &b;
        b.victim = &a;
        a.set = b.set = set;
        turn();
        assert_int_equal(a.count + b.count, 1);
        side_close(&a);
        side_close(&b);
}

static void test_another_watch_may_go(void **state) {
        (void)state;
        check_victim(0);
}

static void test_another_watch_may_change(void **state) {
        (void)state;
        check_victim(EPOLLIN);
}

static void test_regular_files_are_refused(void **state) {
        int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        LoopWatch *watch = NULL;
        Error error;

        (void)state;
        assert_true(fd >= 0);
        assert_int_equal(loop_watch(loop, fd, EPOLLIN, on_event, NULL, &watch, &error), -EPERM);
        assert_null(watch);
        assert_int_equal(error.errnum, EPERM);
        (void)fd_close(fd);
}

/* --- timers --- */

typedef struct Alarm {
        LoopTimer *timer;
        int order; /* the position of its last call, from 1 */
        int count;
        uint64_t again;       /* the time to which it sets itself */
        struct Alarm *victim; /* the alarm that it frees */
} Alarm;

static int alarms_called;

static void on_alarm(void *data) {
        Alarm *a = data;

        a->order = ++alarms_called;
        a->count++;
        if (a->again)
                loop_timer_set(a->timer, a->again);
        if (a->victim)
                a->victim->timer = loop_timer_free(a->victim->timer);
}

static void alarm_open(Alarm *a, uint64_t at) {
        *a = (Alarm){ 0 };
        alarms_called = 0;
        assert_int_equal(loop_timer_new(loop, on_alarm, a, &a->timer, NULL), 0);
        if (at)
                loop_timer_set(a->timer, at);
}

static void test_timers_go_by_time(void **state) {
        uint64_t now = time_now_usec();
        Alarm a[5];

        (void)state;
        alarm_open(&a[0], now - 10);
        alarm_open(&a[1], now - 30);
        alarm_open(&a[2], 0);
        alarm_open(&a[3], now - 20);
        alarm_open(&a[4], now - 10);
        turn();
        assert_int_equal(a[1].order, 1);
        assert_int_equal(a[3].order, 2);
        assert_int_equal(a[0].order, 3);
        assert_int_equal(a[4].order, 4);
        assert_int_equal(a[2].order, 0);
        turn();
        assert_int_equal(alarms_called, 4);
        /* teardown frees them, because remaining timers belong to the loop */
}

static void test_timers_are_not_early(void **state) {
        uint64_t at = time_now_usec() + 2500;

        (void)state;
        loop_timer_set(stop, at);
        assert_int_equal(loop_run(loop), 0);
        assert_true(time_now_usec() >= at);
}

static void test_timers_are_taken_back(void **state) {
        Alarm a, b;

        (void)state;
        alarm_open(&a, time_now_usec() + 60000000);
        alarm_open(&b, time_now_usec());
        loop_timer_set(a.timer, 1);
        loop_timer_set(b.timer, 0);
        turn();
        assert_int_equal(a.count, 1);
        assert_int_equal(b.count, 0);
        a.timer = loop_timer_free(a.timer);
        b.timer = loop_timer_free(b.timer);
        turn();
        assert_int_equal(alarms_called, 1);
}

static void test_a_due_timer_may_go(void **state) {
        Alarm a, b, itself;

        (void)state;
        alarm_open(&a, 1);
        alarm_open(&b, 2);
        alarm_open(&itself, 3);
        a.victim = &b;
        itself.victim = &itself;
        turn();
        assert_int_equal(a.count, 1);
        assert_int_equal(b.count, 0);
        assert_int_equal(itself.count, 1);
        assert_null(itself.timer);
}

/* A timer that is always due leaves fds and other timers their turns. */
static void test_a_timer_starves_nobody(void **state) {
        Alarm busy, other;
        Side side;

        (void)state;
        side_open(&side, EPOLLOUT);
        alarm_open(&busy, 1);
        alarm_open(&other, 2);
        busy.again = 1;
        turn();
        turn();
        assert_int_equal(busy.count, 2);
        assert_int_equal(other.count, 1);
        assert_int_equal(side.count, 2);
        side_close(&side);
}

static void test_stop_before_run(void **state) {
        (void)state;
        loop_stop(loop);
        assert_int_equal(loop_run(loop), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
                TEST(hands_events_out),          TEST(its_own_watch_may_go),
                TEST(another_watch_may_go),      TEST(another_watch_may_change),
                TEST(regular_files_are_refused), TEST(timers_go_by_time),
                TEST(timers_are_not_early),      TEST(timers_are_taken_back),
                TEST(a_due_timer_may_go),        TEST(a_timer_starves_nobody),
                TEST(stop_before_run),
#undef TEST
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
