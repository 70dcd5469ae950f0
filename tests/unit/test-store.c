/* SPDX-License-Identifier: Apache-2.0 */
/* Tests opening, migrations, and crashes. */
#include "store-fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/capability.h>

static Error error;

/* --- opening --- */

static void test_stored_values_survive_reopening(void **state) {
        _cleanup_free_ char *value = NULL, *none = NULL;
        Store *store = create_store();

        (void)state;
        set_key(store, "a");
        OK(store_meta_set(store, "policy", "{}", &error));
        OK(store_meta_set(store, "policy", "{\"holt\": 1}", &error));
        store_free(store);
        store = open_store(STORE_DB, STORE_WRITE);
        assert_true(has_key(store, "a"));
        OK(store_meta_get(store, "policy", &value, &error));
        assert_string_equal(value, "{\"holt\": 1}");
        OK(store_meta_get(store, "created_at", &none, &error));
        assert_null(none);
        assert_null(store_free(store));
        assert_null(store_free(NULL));
}

static void test_files_are_the_owners_alone(void **state) {
        static const char *const names[] = { STORE_DB, STORE_DB "-wal", STORE_DB "-shm" };
        const mode_t mask = umask(0);
        Store *store = create_store();
        struct stat st;

        (void)state;
        set_key(store, "a");
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                assert_int_equal(stat(names[i], &st), 0);
                assert_int_equal(st.st_mode & 07777, 0600);
        }
        store_free(store);
        assert_int_equal(access(STORE_DB "-wal", F_OK), -1);
        assert_int_equal(access(STORE_DB "-shm", F_OK), -1);
        (void)umask(mask);
}

static void check_pragma(Store *store, const char *sql, const char *value) {
        sqlite3_stmt *handle;

        assert_int_equal(sqlite3_prepare_v2(store->db, sql, -1, &handle, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(handle), SQLITE_ROW);
        assert_string_equal((const char *)sqlite3_column_text(handle, 0), value);
        assert_int_equal(sqlite3_finalize(handle), SQLITE_OK);
}

static void test_a_commit_is_whole_and_does_not_wait_for_the_disk(void **state) {
        static const StoreMode modes[] = { STORE_CREATE, STORE_WRITE };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(modes); i++) {
                _cleanup_(store_freep) Store *store = NULL;

                OK(store_open(STORE_DB, modes[i], &store, &error));
                check_pragma(store, "PRAGMA synchronous", "1");
                check_pragma(store, "PRAGMA journal_mode", "wal");
                check_pragma(store, "PRAGMA foreign_keys", "1");
                check_pragma(store, "PRAGMA trusted_schema", "0");
                check_pragma(store, "PRAGMA cell_size_check", "1");
        }
}

static void test_an_existing_store_is_not_made_again(void **state) {
        Store *store = create_store();

        (void)state;
        set_key(store, "a");
        store_free(store);
        refuse_store(STORE_DB, STORE_CREATE, ERROR_EXISTS, "cannot make");
        store = open_store(STORE_DB, STORE_READ);
        assert_true(has_key(store, "a"));
        store_free(store);
}

static void test_missing_databases_are_an_error(void **state) {
        (void)state;
        refuse_store(STORE_DB, STORE_WRITE, ERROR_MISSING, "/" STORE_DB);
        refuse_store(STORE_DB, STORE_READ, ERROR_MISSING, STORE_DB);
        refuse_store("none/" STORE_DB, STORE_CREATE, ERROR_MISSING, "directory none");
        assert_int_equal(access(STORE_DB, F_OK), -1);
}

static void test_nothing_but_a_file_is_opened(void **state) {
        (void)state;
        store_free(open_store("real.db", STORE_CREATE));
        assert_int_equal(symlink("real.db", STORE_DB), 0);
        refuse_store(STORE_DB, STORE_WRITE, ERROR_DATA, "not a regular file");
        refuse_store(STORE_DB, STORE_CREATE, ERROR_EXISTS, "cannot make");
        assert_int_equal(unlink(STORE_DB), 0);
        assert_int_equal(mkfifo(STORE_DB, 0600), 0);
        refuse_store(STORE_DB, STORE_READ, ERROR_DATA, "not a regular file");
}

static void test_a_renamed_directory_stays_the_same(void **state) {
        Store *store;

        (void)state;
        assert_int_equal(mkdir("old", 0700), 0);
        store = open_store("old/" STORE_DB, STORE_CREATE);
        assert_int_equal(rename("old", "new"), 0);
        assert_int_equal(mkdir("old", 0700), 0);
        set_key(store, "a");
        store_free(store);
        assert_int_equal(access("new/" STORE_DB "-wal", F_OK), -1);
        assert_int_equal(rmdir("old"), 0);
        store = open_store("new/" STORE_DB, STORE_READ);
        assert_true(has_key(store, "a"));
        store_free(store);
}

/* Makes root obey permissions like any user. */
static void drop_capabilities(void) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = { 0 };

        assert_int_equal(syscall(SYS_capset, &header, none), 0);
}

static void test_directories_above_need_not_be_searchable(void **state) {
        char path[64];
        int status;
        pid_t child;

        (void)state;
        assert_int_equal(mkdir("above", 0700), 0);
        assert_int_equal(mkdir("above/session", 0700), 0);
        _cleanup_close_ int fd = open("above/session", O_PATH | O_DIRECTORY);
        assert_int_equal(chmod("above", 0), 0);
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d/" STORE_DB, fd);
        child = fork();
        if (child == 0) {
                drop_capabilities();
                assert_int_equal(access("above/session", F_OK), -1);
                for (int i = 0; i < 2; i++) {
                        Store *store = open_store(path, i == 0 ? STORE_CREATE : STORE_WRITE);

                        set_key(store, "a");
                        store_free(store);
                }
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(chmod("above", 0700), 0);
        assert_int_equal(access("above/session/" STORE_DB, F_OK), 0);
}

static void test_readers_stand_beside_the_writer(void **state) {
        Store *writer = create_store(), *one, *two;

        (void)state;
        one = open_store(STORE_DB, STORE_READ);
        set_key(writer, "a");
        two = open_store(STORE_DB, STORE_READ);
        set_key(writer, "b");
        assert_true(has_key(one, "a") && has_key(one, "b"));
        assert_true(has_key(two, "a") && has_key(two, "b"));
        store_free(one);
        set_key(writer, "c");
        assert_true(has_key(two, "c"));
        assert_int_equal(store_kv_set(two, "d", "1", 1, &error), -EACCES);
        assert_int_equal(error.kind, ERROR_SETUP);
        store_free(writer);
        assert_true(has_key(two, "c"));
        store_free(two);
        writer = open_store(STORE_DB, STORE_WRITE);
        assert_true(has_key(writer, "c"));
        store_free(writer);
}

/* --- migrations --- */

static const Migration next[] = {
        { 1, "SELECT 1 / 0 FROM no_such_table" }, /* must not run again */
        { 2, "ALTER TABLE meta ADD COLUMN note TEXT; INSERT INTO meta VALUES ('v', '2', '')" },
        { 3, "UPDATE meta SET value = '3' WHERE name = 'v'" },
};

static const Migration broken[] = {
        { 1, "" },
        { 2, "CREATE TABLE half (a INTEGER) STRICT; INSERT INTO half VALUES ('no number')" },
};

static void test_an_older_one_is_brought_up_to_date(void **state) {
        _cleanup_free_ char *value = NULL;
        Store *store = create_store();

        (void)state;
        set_key(store, "a");
        OK(store_migrate(store, next, ELEMENTSOF(next), &error));
        OK(store_meta_get(store, "v", &value, &error));
        assert_string_equal(value, "3");
        assert_true(has_key(store, "a"));
        OK(store_migrate(store, next, ELEMENTSOF(next), &error));
        store_free(store);
        refuse_store(STORE_DB, STORE_WRITE, ERROR_DATA,
                     "has version 3; this holt supports versions up to 1");
        refuse_store(STORE_DB, STORE_READ, ERROR_DATA, "newer holt");
}

static void test_a_newer_one_in_the_log_is_refused_too(void **state) {
        Store *store = create_store(), *reader = open_store(STORE_DB, STORE_READ);

        (void)state;
        OK(store_migrate(store, next, ELEMENTSOF(next), &error));
        refuse_store(STORE_DB, STORE_WRITE, ERROR_DATA, "has version 3");
        assert_true(store_migrate(reader, store_migrations, store_migrations_count, &error) < 0);
        assert_int_equal(error.kind, ERROR_DATA);
        store_free(reader);
        store_free(store);
}

static void test_a_migration_is_all_or_nothing(void **state) {
        Store *store = create_store();

        (void)state;
        assert_true(store_migrate(store, broken, ELEMENTSOF(broken), &error) < 0);
        assert_int_equal(error.kind, ERROR_DATA);
        OK(store_check_schema(store, &error));
        set_key(store, "a");
        store_free(store);
        store_free(open_store(STORE_DB, STORE_WRITE));
}

static void test_a_reader_does_not_migrate(void **state) {
        Store *store;

        (void)state;
        store_free(create_store());
        store = open_store(STORE_DB, STORE_READ);
        assert_true(store_migrate(store, next, ELEMENTSOF(next), &error) < 0);
        assert_int_equal(error.kind, ERROR_BUSY);
        assert_string_not_equal(error.cure, "");
        store_free(store);
}

/* --- crashes --- */

/* Writes until it is killed, and reports each commit. */
static _noreturn_ void write_on(int out, unsigned round) {
        Store *store = open_store(STORE_DB, STORE_WRITE);
        char key[32];

        /* Waits for the disk like a keeper, so that the kill comes mostly during such a wait. */
        if (round % 5 == 0)
                (void)sqlite3_exec(store->db, "PRAGMA synchronous = FULL", NULL, NULL, NULL);
        for (uint32_t i = 0;; i++) {
                uint64_t id;

                (void)snprintf(key, sizeof(key), "%u.%u", round, i);
                set_key(store, key);
                OK(store_history_begin(store, "exec", key, time_epoch_ms(), &id, &error));
                OK(store_history_end(store, id, key, time_epoch_ms(), &error));
                if (write(out, &i, sizeof(i)) != sizeof(i))
                        _exit(1);
        }
}

/* Kills a writer a little after it has reported enough commits. *ret_count is the number reported.
 */
static void kill_writer(unsigned round, unsigned least, unsigned spin, uint32_t *ret_count) {
        int pipes[2], status;
        uint32_t i = 0, count = 0;
        pid_t child;

        assert_int_equal(pipe(pipes), 0);
        child = fork();
        if (child == 0) {
                (void)close(pipes[0]);
                write_on(pipes[1], round);
        }
        (void)close(pipes[1]);
        while (count < least && read(pipes[0], &i, sizeof(i)) == sizeof(i))
                count++;
        for (volatile unsigned n = 0; n < spin; n++)
                ;
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        while (read(pipes[0], &i, sizeof(i)) == sizeof(i))
                count++;
        (void)close(pipes[0]);
        assert_true(count >= least);
        *ret_count = count;
}

static void test_another_process_reads_what_is_committed(void **state) {
        int pipes[2], status;
        char key[32];
        uint32_t i;
        Store *store;
        pid_t child;

        (void)state;
        store_free(create_store());
        assert_int_equal(pipe(pipes), 0);
        child = fork();
        if (child == 0)
                write_on(pipes[1], 0);
        store = open_store(STORE_DB, STORE_READ);
        for (uint32_t count = 0; count < 100; count++) {
                assert_int_equal(read(pipes[0], &i, sizeof(i)), sizeof(i));
                (void)snprintf(key, sizeof(key), "0.%u", i);
                assert_true(has_key(store, key));
        }
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(has_key(store, "0.99"));
        store_free(store);
        (void)close(pipes[0]);
        (void)close(pipes[1]);
}

typedef struct Ended {
        unsigned round;
        uint32_t count;
} Ended;

static int count_ended(void *data, const StoreHistory *row) {
        Ended *ended = data;
        unsigned round, i;

        assert_int_equal(sscanf(row->params, "%u.%u", &round, &i), 2);
        if (round == ended->round && row->result) {
                assert_string_equal(row->result, row->params);
                ended->count++;
        }
        return 0;
}

static void test_a_killed_writer_loses_nothing(void **state) {
        unsigned seed = 1;

        (void)state;
        store_free(create_store());
        for (unsigned round = 0; round < 50; round++) {
                Ended ended = { .round = round };
                uint32_t count;
                char key[32];
                Store *store;

                kill_writer(round, (unsigned)rand_r(&seed) % 20, (unsigned)rand_r(&seed) % 500000,
                            &count);
                store = open_store(STORE_DB, STORE_WRITE);
                for (uint32_t i = 0; i < count; i++) {
                        (void)snprintf(key, sizeof(key), "%u.%u", round, i);
                        assert_true(has_key(store, key));
                }
                OK(store_history_list(store, 0, NULL, 100000, count_ended, &ended, &error));
                assert_true(ended.count >= count);
                store_free(store);
        }
}

/* Opening fails only if the store was half made. */
static void check_made(void) {
        Store *store = NULL;

        if (access(STORE_DB, F_OK) < 0)
                return;
        if (store_open(STORE_DB, STORE_WRITE, &store, &error) == 0)
                set_key(store, "a");
        else if (error.kind != ERROR_DATA)
                fail_msg("%s: %s", error_kind_name(error.kind), error.text);
        store_free(store);
        assert_int_equal(unlink(STORE_DB), 0);
        (void)unlink(STORE_DB "-wal");
        (void)unlink(STORE_DB "-shm");
}

static void test_a_killed_maker_leaves_what_is_refused_or_whole(void **state) {
        (void)state;
        for (unsigned round = 0; round < 50; round++) {
                int status;
                pid_t child = fork();

                if (child == 0)
                        for (;;)
                                if (store_free(create_store()) || unlink(STORE_DB) < 0)
                                        _exit(1);
                for (volatile unsigned n = 0; n < 500000 + round * 20000; n++)
                        ;
                assert_int_equal(kill(child, SIGKILL), 0);
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_true(WIFSIGNALED(status));
                check_made();
        }
}

static uint64_t resident(void) {
        unsigned long total, pages;
        FILE *file = fopen("/proc/self/statm", "re");

        assert_non_null(file);
        assert_int_equal(fscanf(file, "%lu %lu", &total, &pages), 2);
        (void)fclose(file);
        return (uint64_t)pages * 4096;
}

static void test_memory_does_not_grow_with_what_is_written(void **state) {
        _cleanup_(store_freep) Store *store = create_store();
        char key[32];
        uint64_t before = 0, after;

        (void)state;
        for (int i = 0; i < 4000; i++) {
                if (i == 1000)
                        before = resident();
                (void)snprintf(key, sizeof(key), "key %d", i);
                OK(store_kv_set(store, key, error.text, sizeof(error.text), &error));
                OK(add_history_row(store, "exec", "{}", "{}", 1, &error));
                assert_true(has_key(store, key));
        }
        store_rest(store);
        after = resident();
#ifndef __SANITIZE_ADDRESS__ /* the sanitizer keeps freed memory */
        assert_true(after < before + (512 << 10));
#else
        assert_true(before > 0 && after > 0);
#endif
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter_directory, leave_directory)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_stored_values_survive_reopening),
                TEST(test_files_are_the_owners_alone),
                TEST(test_a_commit_is_whole_and_does_not_wait_for_the_disk),
                TEST(test_an_existing_store_is_not_made_again),
                TEST(test_missing_databases_are_an_error),
                TEST(test_nothing_but_a_file_is_opened),
                TEST(test_a_renamed_directory_stays_the_same),
                TEST(test_directories_above_need_not_be_searchable),
                TEST(test_readers_stand_beside_the_writer),
                TEST(test_an_older_one_is_brought_up_to_date),
                TEST(test_a_newer_one_in_the_log_is_refused_too),
                TEST(test_a_migration_is_all_or_nothing),
                TEST(test_a_reader_does_not_migrate),
                TEST(test_another_process_reads_what_is_committed),
                TEST(test_a_killed_writer_loses_nothing),
                TEST(test_a_killed_maker_leaves_what_is_refused_or_whole),
                TEST(test_memory_does_not_grow_with_what_is_written),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
