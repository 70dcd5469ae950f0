/* SPDX-License-Identifier: Apache-2.0 */
/* Tests runner/streams/relay.c: chunks and the budget. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "streams/relay.h"

typedef struct Ends {
        int reader, writer;
} Ends;

static Ends open_ends(int flags) {
        int fds[2];

        assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK | flags), 0);
        return (Ends){ fds[0], fds[1] };
}

static void put(const Ends *ends, const char *text) {
        assert_int_equal(write(ends->writer, text, strlen(text)), strlen(text));
}

static void assert_has(const Relay *relay, const char *text) {
        assert_int_equal(relay->end - relay->start, strlen(text));
        assert_memory_equal(relay->data + relay->start, text, strlen(text));
}

static void test_budget_is_exact(void **state) {
        static const struct {
                uint64_t limit;
                size_t size, kept;
                bool spent, passed;
        } cases[] = {
                { 10, 0, 0, false, false },
                { 10, 9, 9, false, false },
                { 10, 10, 10, true, false },
                { 10, 11, 10, true, true },
                { UINT64_MAX, SIZE_MAX - 1, SIZE_MAX - 1, false, false },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Budget budget = { .limit = cases[i].limit };

                assert_int_equal(budget_take(&budget, cases[i].size), cases[i].kept);
                assert_int_equal(budget.taken, cases[i].kept);
                assert_int_equal(budget.dropped, cases[i].size - cases[i].kept);
                assert_int_equal(budget_spent(&budget), cases[i].spent);
                assert_int_equal(budget.passed, cases[i].passed);
        }
        assert_int_equal(budget_take(NULL, 7), 7);
        assert_false(budget_spent(NULL));
}

/* Output that waits for a slow reader stays, and later output is dropped. */
static void test_dropped_output_needs_no_room(void **state) {
        Budget budget = { .limit = 5 };
        Relay relay = { 0 };
        Ends ends = open_ends(0);

        (void)state;
        put(&ends, "1234567");
        assert_int_equal(relay_fill(&relay, ends.reader, &budget), 7);
        assert_has(&relay, "12345");
        assert_true(relay_advance(&relay, 2));
        put(&ends, "89");
        assert_int_equal(relay_fill(&relay, ends.reader, &budget), 2);
        assert_has(&relay, "345");
        assert_int_equal(budget.dropped, 4);
        relay_discard(&relay, &budget);
        assert_true(relay_empty(&relay));
        assert_int_equal(budget.lost, 3);
        fd_close(ends.reader);
        fd_close(ends.writer);
}

static void test_the_end_of_the_source(void **state) {
        Relay relay = { 0 };
        Ends ends = open_ends(0);

        (void)state;
        assert_int_equal(relay_fill(&relay, ends.reader, NULL), 0);
        assert_false(relay.closed);
        fd_close(ends.writer);
        assert_int_equal(relay_fill(&relay, ends.reader, NULL), 0);
        assert_true(relay.closed);
        fd_close(ends.reader);
}

/* If the buffer is too small for a packet of a pipe (O_DIRECT), read(2) cuts the packet, whatever
 * the budget. */
static void test_packets_are_counted_whole(void **state) {
        static const char packet[PIPE_BUF];
        Budget budget = { .limit = 3 };
        Relay relay = { 0 };
        Ends ends = open_ends(O_DIRECT);

        (void)state;
        for (int i = 0; i < 2; i++) {
                assert_int_equal(write(ends.writer, packet, sizeof(packet)), sizeof(packet));
                assert_int_equal(relay_fill(&relay, ends.reader, &budget), sizeof(packet));
        }
        assert_int_equal(budget.taken, 3);
        assert_int_equal(budget.dropped, 2 * sizeof(packet) - 3);
        fd_close(ends.reader);
        fd_close(ends.writer);
}

static void test_held_output_comes_first(void **state) {
        Relay relay = { .held = true };
        Ends ends = open_ends(0);

        (void)state;
        assert_int_equal(relay_fill(&relay, ends.reader, NULL), 0);
        assert_true(relay_empty(&relay) && relay.held);
        put(&ends, "\nx");
        assert_int_equal(relay_fill(&relay, ends.reader, NULL), 2);
        assert_has(&relay, "\r\nx");
        assert_false(relay.held);
        fd_close(ends.reader);
        fd_close(ends.writer);
}

static void test_a_write_that_fails_for_good(void **state) {
        static const struct {
                ssize_t n;
                int errnum;
                bool goes_on;
        } cases[] = { { 0, 0, true },
                      { -1, EAGAIN, true },
                      { -1, EINTR, true },
                      { -1, EPIPE, false },
                      { -1, ENOSPC, false } };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Relay relay = { .end = 4 };

                errno = cases[i].errnum;
                assert_int_equal(relay_advance(&relay, cases[i].n), cases[i].goes_on);
                assert_int_equal(relay.start, 0);
        }
}

/* --- writing to a reader that has stopped --- */

static int open_full_pipe(int *ret_reader) {
        int fds[2];
        char data[4096] = { 0 };

        assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
        while (write(fds[1], data, sizeof(data)) > 0)
                ;
        assert_int_equal(fcntl(fds[1], F_SETFL, 0), 0);
        *ret_reader = fds[0];
        return fds[1];
}

/* No signal can be queued, like after another process of the user has taken them all. */
static void test_a_write_ends_though_nobody_reads(void **state) {
        struct rlimit old;
        int reader, fd = open_full_pipe(&reader);

        (void)state;
        assert_int_equal(getrlimit(RLIMIT_SIGPENDING, &old), 0);
        assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &(struct rlimit){ .rlim_max = old.rlim_max }),
                         0);
        assert_int_equal(patience_write(fd, "x", 1), -1);
        assert_int_equal(errno, EINTR);
        assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &old), 0);
        (void)close(fd);
        (void)close(reader);
}

static volatile sig_atomic_t alarms;

static void count_alarm(int signal) {
        (void)signal;
        alarms++;
}

static void test_the_caller_s_alarm_goes_on(void **state) {
        const struct sigaction action = { .sa_handler = count_alarm };
        struct itimerval left;
        int reader, fd = open_full_pipe(&reader);

        (void)state;
        assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
        (void)alarm(1000);
        assert_int_equal(patience_write(fd, "x", 1), -1);
        assert_int_equal(getitimer(ITIMER_REAL, &left), 0);
        assert_in_range(left.it_value.tv_sec, 900, 1000);
        assert_int_equal(left.it_interval.tv_usec, 0);
        assert_int_equal(alarms, 0);
        (void)alarm(0);
        (void)close(fd);
        (void)close(reader);
}

static void test_an_alarm_from_outside_is_not_lost(void **state) {
        sigset_t set, old;
        int reader, fd = open_full_pipe(&reader);

        (void)state;
        alarms = 0;
        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGALRM);
        assert_int_equal(sigprocmask(SIG_BLOCK, &set, &old), 0);
        assert_int_equal(raise(SIGALRM), 0);
        assert_int_equal(patience_write(fd, "x", 1), -1);
        assert_int_equal(alarms, 0);
        assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
        assert_int_equal(alarms, 1);
        (void)close(fd);
        (void)close(reader);
}

static void test_lines_are_written_whole(void **state) {
        char data[PIPE_BUF + 2];

        (void)state;
        memset(data, 'x', sizeof(data));
        assert_int_equal(pipe_part(data, PIPE_BUF), PIPE_BUF);
        assert_int_equal(pipe_part(data, PIPE_BUF + 1), PIPE_BUF);
        data[9] = data[99] = data[PIPE_BUF] = '\n';
        assert_int_equal(pipe_part(data, PIPE_BUF + 2), 100);
        data[PIPE_BUF - 1] = '\n';
        assert_int_equal(pipe_part(data, PIPE_BUF + 2), PIPE_BUF);
        assert_int_equal(pipe_part(data, 50), 50);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_budget_is_exact),
                cmocka_unit_test(test_dropped_output_needs_no_room),
                cmocka_unit_test(test_the_end_of_the_source),
                cmocka_unit_test(test_packets_are_counted_whole),
                cmocka_unit_test(test_held_output_comes_first),
                cmocka_unit_test(test_a_write_that_fails_for_good),
                cmocka_unit_test(test_lines_are_written_whole),
                cmocka_unit_test(test_a_write_ends_though_nobody_reads),
                cmocka_unit_test(test_the_caller_s_alarm_goes_on),
                cmocka_unit_test(test_an_alarm_from_outside_is_not_lost),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
