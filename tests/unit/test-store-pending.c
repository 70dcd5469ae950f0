/* SPDX-License-Identifier: Apache-2.0 */
/* Tests rows of the history that are not in the database yet when the process ends. */
#include "store-fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PENDING STORE_DB "-pending"

static Error error;

typedef struct Listing {
        char text[1024];
        uint64_t first_id;
        size_t count;
} Listing;

static int add_row(void *data, const StoreHistory *row) {
        Listing *listing = data;
        const size_t used = strlen(listing->text);

        assert_true(row->started_ms > 0);
        if (listing->count++ == 0)
                listing->first_id = row->id;
        (void)snprintf(listing->text + used, sizeof(listing->text) - used, "%s%s%s ", row->name,
                       row->params, row->result ? row->result : "...");
        return 0;
}

static Listing list(Store *store, uint64_t before, const char *name, uint64_t limit) {
        Listing listing = { .text = "" };

        OK(store_history_list(store, before, name, limit, add_row, &listing, &error));
        return listing;
}

static void check_list(StoreMode mode, const char *text) {
        Store *store = open_store(STORE_DB, mode);

        assert_string_equal(list(store, 0, NULL, 99).text, text);
        store_free(store);
}

static void add(Store *store, const char *name, const char *params) {
        OK(add_history_row(store, name, params, "r", 1, &error));
}

static size_t rows_in_database(Store *store) {
        StoreSize size;

        OK(store_size(store, STORE_HISTORY, &size, &error));
        return size.rows;
}

/* Adds a1, b2 and a3 in a process that ends abruptly. */
static void add_and_die(void) {
        int status = 0;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                Store *store = NULL;

                if (store_open(STORE_DB, STORE_WRITE, &store, &error) < 0 ||
                    add_history_row(store, "a", "1", "r", 1, &error) < 0 ||
                    add_history_row(store, "b", "2", "r", 1, &error) < 0 ||
                    add_history_row(store, "a", "3", NULL, 1, &error) < 0)
                        _exit(1);
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

/* Opens a store with one row to read it, after another process has added three and died. */
static Store *read_after_death(void) {
        Store *store = open_store(STORE_DB, STORE_WRITE);

        add(store, "x", "0");
        store_free(store);
        add_and_die();
        return open_store(STORE_DB, STORE_READ);
}

static int enter(void **state) {
        int r = enter_directory(state);

        if (r == 0)
                store_free(create_store());
        return r;
}

/* --- leftovers --- */

static void test_the_next_process_has_what_a_dead_one_added(void **state) {
        (void)state;
        add_and_die();
        check_list(STORE_WRITE, "a3... b2r a1r ");
        /* The row is now in the database, once. */
        assert_int_equal(access(PENDING, F_OK), -1);
        check_list(STORE_READ, "a3... b2r a1r ");
        check_list(STORE_WRITE, "a3... b2r a1r ");
}

static void test_readers_see_pending_rows_and_leave_them(void **state) {
        Store *store = read_after_death();

        (void)state;
        assert_string_equal(list(store, 0, NULL, 99).text, "a3... b2r a1r x0r ");
        assert_string_equal(list(store, 0, NULL, 2).text, "a3... b2r ");
        assert_string_equal(list(store, 0, NULL, 3).text, "a3... b2r a1r ");
        assert_string_equal(list(store, list(store, 0, NULL, 9).first_id, NULL, 9).text,
                            "b2r a1r x0r ");
        assert_string_equal(list(store, 0, "a", 9).text, "a3... a1r ");
        assert_string_equal(list(store, 0, "x", 9).text, "x0r ");
        assert_int_equal(rows_in_database(store), 1);
        store_free(store);
        check_list(STORE_WRITE, "a3... b2r a1r x0r ");
}

static void test_rows_moved_by_another_process_are_listed_once(void **state) {
        Store *store = read_after_death();

        (void)state;
        check_list(STORE_WRITE, "a3... b2r a1r x0r ");
        assert_int_equal(rows_in_database(store), 4);
        assert_string_equal(list(store, 0, NULL, 99).text, "a3... b2r a1r x0r ");
        assert_string_equal(list(store, 0, "a", 99).text, "a3... a1r ");
        store_free(store);
}

static void test_moved_rows_that_are_left_behind_are_listed_once(void **state) {
        _cleanup_free_ char *left = NULL;
        size_t size;

        (void)state;
        add_and_die();
        left = read_file(PENDING, &size);
        check_list(STORE_WRITE, "a3... b2r a1r ");
        write_file(PENDING, left, size);
        check_list(STORE_READ, "a3... b2r a1r ");
        check_list(STORE_WRITE, "a3... b2r a1r ");
        write_file(PENDING, left, size);
        {
                Store *store = open_store(STORE_DB, STORE_WRITE);

                add(store, "c", "4");
                assert_string_equal(list(store, 0, NULL, 99).text, "c4r a3... b2r a1r ");
                store_free(store);
        }
}

/* A file that could not be emptied has older rows after the newest. */
static void test_old_rows_after_the_newest_are_ignored(void **state) {
        _cleanup_free_ char *left = NULL, *now = NULL;
        size_t size, now_size;
        Store *store;

        (void)state;
        add_and_die();
        left = read_file(PENDING, &size);
        check_list(STORE_WRITE, "a3... b2r a1r ");
        store = open_store(STORE_DB, STORE_WRITE);
        add(store, "c", "4");
        now = read_file(PENDING, &now_size);
        assert_true(now_size < size);
        memcpy(left, now, now_size);
        OK(store_history_flush(store, &error));
        store_free(store);
        write_file(PENDING, left, size);
        check_list(STORE_WRITE, "c4r a3... b2r a1r ");
}

static void test_a_record_cut_short_or_changed_ends_it(void **state) {
        _cleanup_free_ char *left = NULL;
        size_t size;

        (void)state;
        add_and_die();
        left = read_file(PENDING, &size);
        write_file(PENDING, left, size - 1);
        check_list(STORE_READ, "b2r a1r ");
        for (size_t i = 0; i < size; i++) {
                Store *store;

                left[i] ^= 0x10;
                write_file(PENDING, left, size);
                store = open_store(STORE_DB, STORE_READ);
                /* The damaged record and everything after it are lost. */
                assert_in_range(list(store, 0, NULL, 99).count, 0, 2);
                store_free(store);
                left[i] ^= 0x10;
        }
        write_file(PENDING, left, size);
        check_list(STORE_READ, "a3... b2r a1r ");
}

static void test_other_files_in_its_place(void **state) {
        _cleanup_free_ char *zeros = calloc(1, 1 << 20);

        (void)state;
        write_file(PENDING, zeros, 1 << 20);
        check_list(STORE_WRITE, "");
        memset(zeros, 0xff, 1 << 20);
        write_file(PENDING, zeros, 1 << 20);
        check_list(STORE_WRITE, "");
        assert_int_equal(mkfifo(PENDING, 0600), 0);
        refuse_store(STORE_DB, STORE_WRITE, ERROR_DATA, "not a regular file");
        assert_int_equal(unlink(PENDING), 0);
        assert_int_equal(symlink("elsewhere", PENDING), 0);
        refuse_store(STORE_DB, STORE_WRITE, ERROR_SETUP, "-pending");
        assert_int_equal(access("elsewhere", F_OK), -1);
}

/* --- in one process --- */

static void count_call(void *data) {
        ++*(int *)data;
}

static void test_it_is_said_once_until_it_is_moved(void **state) {
        _cleanup_(store_freep) Store *store = open_store(STORE_DB, STORE_WRITE);
        int calls = 0;

        (void)state;
        store_on_pending(store, count_call, &calls);
        add(store, "a", "1");
        add(store, "a", "2");
        assert_int_equal(calls, 1);
        assert_int_equal(rows_in_database(store), 0);
        OK(store_history_flush(store, &error));
        OK(store_history_flush(store, &error));
        assert_int_equal(rows_in_database(store), 2);
        add(store, "a", "3");
        assert_int_equal(calls, 2);
        store_on_pending(store, NULL, NULL);
        store_on_pending(store, count_call, &calls);
        assert_int_equal(calls, 3);
}

static void test_the_order_is_that_of_the_calls(void **state) {
        _cleanup_(store_freep) Store *store = open_store(STORE_DB, STORE_WRITE);
        const StoreHistory tool = {
                .name = "t", .params = "4", .result = "r", .started_ms = 1, .ended_ms = 2
        };
        uint64_t id = 0;

        (void)state;
        add(store, "a", "1");
        OK(store_history_begin(store, "b", "2", time_epoch_ms(), &id, &error));
        assert_int_equal(id, 2);
        add(store, "c", "3");
        OK(store_audited_add(store, &tool, "tool", "{}", &error));
        add(store, "d", "5");
        assert_string_equal(list(store, 0, NULL, 9).text, "d5r t4r c3r b2... a1r ");
        assert_int_equal(list(store, 0, NULL, 9).first_id, 5);
}

static void test_many_are_moved_by_themselves(void **state) {
        _cleanup_(store_freep) Store *store = open_store(STORE_DB, STORE_WRITE);
        struct stat st;

        (void)state;
        for (int i = 0; i < 1000; i++)
                add(store, "a", "1");
        assert_in_range(rows_in_database(store), 900, 1000);
        assert_int_equal(stat(PENDING, &st), 0);
        assert_in_range(st.st_size, 0, 10000);
        assert_int_equal(st.st_mode & 07777, 0600);
        OK(store_history_flush(store, &error));
        assert_int_equal(rows_in_database(store), 1000);
}

/* Imitates a full disk. */
static void test_without_its_file_a_row_goes_into_the_database(void **state) {
        _cleanup_(store_freep) Store *store = open_store(STORE_DB, STORE_WRITE);

        (void)state;
        add(store, "a", "1");
        (void)fd_close(store->pending.fd);
        store->pending.fd = open(PENDING, O_RDONLY | O_CLOEXEC);
        add(store, "b", "2");
        assert_int_equal(rows_in_database(store), 2);
        assert_string_equal(list(store, 0, NULL, 9).text, "b2r a1r ");
}

static void run_sql(Store *store, const char *sql) {
        assert_int_equal(sqlite3_exec(store->db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static void test_rows_without_room_in_the_database_are_listed_and_kept(void **state) {
        _cleanup_(store_freep) Store *store = open_store(STORE_DB, STORE_WRITE);
        _cleanup_free_ char *text = calloc(1, STORE_TEXT_MAX + 1);

        (void)state;
        add(store, "a", "1");
        OK(store_history_flush(store, &error));
        run_sql(store, "PRAGMA max_page_count = 1"); /* the current number of pages */
        memset(text, 'x', STORE_TEXT_MAX);
        OK(add_history_row(store, "b", "2", text, 1, &error));
        add(store, "c", "3");
        assert_int_equal(store_history_flush(store, &error), -ENOSPC);
        assert_int_equal(list(store, 0, NULL, 9).count, 3);
        assert_string_equal(list(store, 0, NULL, 1).text, "c3r ");
        assert_string_equal(list(store, 0, "a", 9).text, "a1r ");
        run_sql(store, "PRAGMA max_page_count = 100000");
        OK(store_history_flush(store, &error));
        assert_int_equal(list(store, 0, NULL, 9).count, 3);
        assert_int_equal(rows_in_database(store), 3);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave_directory)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_the_next_process_has_what_a_dead_one_added),
                TEST(test_readers_see_pending_rows_and_leave_them),
                TEST(test_rows_moved_by_another_process_are_listed_once),
                TEST(test_moved_rows_that_are_left_behind_are_listed_once),
                TEST(test_old_rows_after_the_newest_are_ignored),
                TEST(test_a_record_cut_short_or_changed_ends_it),
                TEST(test_other_files_in_its_place),
                TEST(test_it_is_said_once_until_it_is_moved),
                TEST(test_the_order_is_that_of_the_calls),
                TEST(test_many_are_moved_by_themselves),
                TEST(test_without_its_file_a_row_goes_into_the_database),
                TEST(test_rows_without_room_in_the_database_are_listed_and_kept),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
