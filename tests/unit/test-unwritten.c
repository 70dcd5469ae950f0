/* SPDX-License-Identifier: Apache-2.0 */
/* Tests store/unwritten.c: rows that cannot be written wait in order, and lost ones are counted.
 * tests/e2e/test_session_database.py tests a disk that is really full. */
#include "store-fixture.h"

#include <fcntl.h>

#include "base/time.h"
#include "store/unwritten.h"

static Error error;

typedef struct World {
        Loop *loop;
        Store *store;
        LoopTimer *stop;
        Unwritten *all;
        int pending_fd; /* while no row can be written */
} World;

static World world;

static void stop(void *loop) {
        loop_stop(loop);
}

static int enter(void **state) {
        if (enter_directory(state) < 0)
                return -1;
        world = (World){ .pending_fd = FD_NONE };
        world.store = create_store();
        OK(loop_new(&world.loop, &error));
        OK(loop_timer_new(world.loop, stop, world.loop, &world.stop, &error));
        OK(unwritten_new(world.loop, world.store, &world.all, &error));
        return 0;
}

static int leave(void **state) {
        world.all = unwritten_free(world.all);
        world.store = store_free(world.store);
        world.loop = loop_free(world.loop);
        return leave_directory(state);
}

/* Fills the database and the file beside it. */
static void fill(void) {
        Pending *pending = &world.store->pending;

        assert_int_equal(sqlite3_exec(world.store->db, "PRAGMA query_only = 1", NULL, NULL, NULL),
                         SQLITE_OK);
        world.pending_fd = pending->fd;
        pending->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_true(pending->fd >= 0);
}

static void make_room(void) {
        Pending *pending = &world.store->pending;

        assert_int_equal(sqlite3_exec(world.store->db, "PRAGMA query_only = 0", NULL, NULL, NULL),
                         SQLITE_OK);
        (void)close(pending->fd);
        pending->fd = world.pending_fd;
}

/* --- reading --- */

static char listing[8192];
static size_t listed;

static void say(const char *fmt, ...) _printf_(1, 2);
static void say(const char *fmt, ...) {
        const size_t used = strlen(listing);
        va_list args;

        va_start(args, fmt);
        (void)vsnprintf(listing + used, sizeof(listing) - used, fmt, args);
        va_end(args);
        listed++;
}

static int say_history(void *data, const StoreHistory *row) {
        (void)data;
        say("%s(%s)=%s@%llu ", row->name, row->params, row->result ? row->result : "",
            (unsigned long long)row->ended_ms);
        return 0;
}

static int say_audit(void *data, const StoreAudit *row) {
        (void)data;
        say("%s:%s ", row->kind, row->detail);
        return 0;
}

static const char *history(void) {
        listing[0] = '\0';
        listed = 0;
        OK(store_history_list(world.store, 0, NULL, 10000, say_history, NULL, &error));
        return listing;
}

static const char *audit(void) {
        listing[0] = '\0';
        listed = 0;
        OK(store_audit_list(world.store, 0, NULL, 10000, say_audit, NULL, &error));
        return listing;
}

static int take_time(void *data, const StoreAudit *row) {
        *(uint64_t *)data = row->at_ms;
        return 0;
}

/* Returns the time of the newest row of that kind. */
static uint64_t audit_time(const char *kind) {
        uint64_t at_ms = 0;

        OK(store_audit_list(world.store, 0, kind, 1, take_time, &at_ms, &error));
        return at_ms;
}

/* --- writing --- */

static const char *record(const char *name, uint64_t id, const char *result) {
        return unwritten_record(world.all, &(const StoreHistory){ .id = id,
                                                                  .name = name,
                                                                  .params = "{}",
                                                                  .result = result,
                                                                  .started_ms = 1,
                                                                  .ended_ms = 2 });
}

static void call_tool(const char *result) {
        unwritten_audited(world.all,
                          &(const StoreHistory){ .name = "tool.call",
                                                 .params = "{}",
                                                 .result = result,
                                                 .started_ms = 3,
                                                 .ended_ms = 4 },
                          "tool", result);
}

/* --- tests --- */

static void test_rows_are_written_at_once_if_there_is_room(void **state) {
        (void)state;
        assert_null(record("exec", 0, "1"));
        unwritten_audit(world.all, "denial", "2");
        call_tool("3");
        assert_string_equal(history(), "tool.call({})=3@4 exec({})=1@2 ");
        assert_string_equal(audit(), "tool:3 denial:2 ");
        assert_int_equal(audit_time("tool"), 4);
}

static void test_each_kind_waits_and_has_its_place_and_its_time(void **state) {
        char text[] = "temporary";
        uint64_t id = 0, before, after;

        (void)state;
        OK(store_history_begin(world.store, "exec", "{}", time_epoch_ms(), &id, &error));
        fill();
        before = time_epoch_ms();
        unwritten_audit(world.all, text, text);
        after = time_epoch_ms();
        memset(text, 'x', sizeof(text) - 1); /* all texts were borrowed */
        assert_non_null(record("exec", id, "first"));
        assert_non_null(record("second", 0, "2"));
        call_tool("third");
        assert_string_equal(audit(), "");
        assert_string_equal(history(), "exec({})=@0 ");
        while (time_epoch_ms() <= after)
                ; /* wait until the clock shows another time */
        make_room();
        assert_null(record("last", 0, "4"));
        assert_string_equal(history(),
                            "last({})=4@2 tool.call({})=third@4 second({})=2@2 exec({})=first@2 ");
        assert_string_equal(audit(), "tool:third temporary:temporary ");
        assert_int_equal(audit_time("tool"), 4);
        assert_in_range(audit_time("temporary"), before, after);
}

static void test_waiting_rows_have_numbers(void **state) {
        _cleanup_free_ char *text = calloc(STORE_TEXT_MAX + 2, 1);
        uint64_t first, second;

        (void)state;
        fill();
        assert_non_null(record("first", 0, "1"));
        first = unwritten_last(world.all);
        assert_non_null(record("second", 0, "1"));
        second = unwritten_last(world.all);
        assert_true(first > 0 && second > first);
        assert_true(unwritten_waits(world.all, first) && unwritten_waits(world.all, second));
        make_room();
        assert_null(record("third", 0, "1"));
        assert_false(unwritten_waits(world.all, first) || unwritten_waits(world.all, second));
        memset(text, 'x', STORE_TEXT_MAX + 1);
        assert_non_null(record("lost", 0, text));
        assert_int_equal(unwritten_last(world.all), 0);
        assert_true(unwritten_waits(world.all, 0));
}

static void test_rows_beyond_the_limit_are_counted(void **state) {
        (void)state;
        fill();
        for (int i = 0; i < UNWRITTEN_MAX + 5; i++)
                unwritten_audit(world.all, "denial", "1");
        make_room();
        unwritten_audit(world.all, "kill", "2");
        audit();
        assert_int_equal(listed, UNWRITTEN_MAX + 2);
        assert_non_null(
                strstr(listing, "kill:2 limit:{\"cause\":\"disk\",\"unrecorded\":5} denial:1 "));
        unwritten_audit(world.all, "kill", "3"); /* only once */
        audit();
        assert_int_equal(listed, UNWRITTEN_MAX + 3);
}

static void test_a_flood_takes_no_other_kind_s_place(void **state) {
        (void)state;
        fill();
        for (int i = 0; i < UNWRITTEN_MAX + 1; i++)
                call_tool("1");
        assert_non_null(record("exec", 0, "1"));
        unwritten_audit(world.all, "denial", "1");
        make_room();
        assert_null(record("last", 0, "1"));
        assert_true(str_starts(history(), "last({})=1@2 exec({})=1@2 tool"));
        assert_int_equal(listed, UNWRITTEN_MAX + 2);
        assert_true(str_starts(audit(), "limit:{\"cause\":\"disk\",\"unrecorded\":1} denial:1 "));
}

static void test_rows_that_are_too_large_are_counted(void **state) {
        _cleanup_free_ char *text = calloc(STORE_TEXT_MAX + 2, 1);

        (void)state;
        memset(text, 'x', STORE_TEXT_MAX + 1);
        assert_non_null(record("exec", 0, text));
        unwritten_audit(world.all, "denial", text);
        assert_null(record("exec", 0, "1"));
        assert_string_equal(history(), "exec({})=1@2 ");
        assert_string_equal(audit(), "limit:{\"cause\":\"size\",\"unrecorded\":1} "
                                     "limit:{\"cause\":\"size\",\"unrecorded\":1} ");
}

static size_t rows_in_database(void) {
        StoreSize size;

        OK(store_size(world.store, STORE_HISTORY, &size, &error));
        return size.rows;
}

/* Runs only the loop. */
static void wait_for_rows(size_t count) {
        const uint64_t end = time_now_usec() + 20 * 1000000;

        while (rows_in_database() < count) {
                assert_true(time_now_usec() < end);
                loop_timer_set(world.stop, time_now_usec() + 10000);
                OK(loop_run(world.loop));
        }
}

static void test_it_is_written_without_another_call(void **state) {
        (void)state;
        assert_null(record("beside", 0, "1"));
        assert_int_equal(rows_in_database(), 0);
        wait_for_rows(1);
        fill();
        assert_non_null(record("waits", 0, "1"));
        call_tool("1");
        make_room();
        wait_for_rows(3);
        assert_string_equal(audit(), "tool:1 ");
}

/* A write that failed once is tried again. */
static void test_it_is_tried_until_there_is_room(void **state) {
        const uint64_t begin = time_now_usec();

        (void)state;
        fill();
        assert_non_null(record("waits", 0, "1"));
        while (time_now_usec() < begin + 1500000) {
                loop_timer_set(world.stop, begin + 1500000);
                OK(loop_run(world.loop));
        }
        make_room();
        wait_for_rows(1);
}

static void test_the_last_try_is_at_the_end(void **state) {
        (void)state;
        fill();
        unwritten_audit(world.all, "denial", "1");
        make_room();
        world.all = unwritten_free(world.all);
        assert_string_equal(audit(), "denial:1 ");
        fill();
        OK(unwritten_new(world.loop, world.store, &world.all, &error));
        unwritten_audit(world.all, "denial", "2");
        world.all = unwritten_free(world.all);
        make_room();
        assert_string_equal(audit(), "denial:1 ");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_rows_are_written_at_once_if_there_is_room),
                TEST(test_each_kind_waits_and_has_its_place_and_its_time),
                TEST(test_waiting_rows_have_numbers),
                TEST(test_rows_beyond_the_limit_are_counted),
                TEST(test_a_flood_takes_no_other_kind_s_place),
                TEST(test_rows_that_are_too_large_are_counted),
                TEST(test_it_is_written_without_another_call),
                TEST(test_it_is_tried_until_there_is_room),
                TEST(test_the_last_try_is_at_the_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
