/* SPDX-License-Identifier: Apache-2.0 */
/* Tests files that are no database of holt's, damaged databases, and failing disks. */
#include "store-fixture.h"

static Error error;

/* --- other files --- */

/* Returns a healthy file of many pages, without files beside it. */
static char *healthy(size_t *ret_size) {
        Store *store = create_store();
        char key[32];

        for (int i = 0; i < 200; i++) {
                uint64_t id;

                (void)snprintf(key, sizeof(key), "key %d", i);
                OK(store_kv_set(store, key, error.text, sizeof(error.text), &error));
                OK(store_history_begin(store, "exec", "{\"command\":[\"make\"]}", time_epoch_ms(),
                                       &id, &error));
                OK(store_history_end(store, id, "{\"exit_code\":0}", time_epoch_ms(), &error));
        }
        store_free(store);
        return read_file(STORE_DB, ret_size);
}

static void check_untouched(const void *data, size_t size) {
        size_t now;
        _cleanup_free_ char *found = read_file(STORE_DB, &now);

        assert_int_equal(now, size);
        assert_memory_equal(found, data, size);
}

static void refuse_bytes(const void *data, size_t size, const char *words) {
        write_file(STORE_DB, data, size);
        refuse_store(STORE_DB, STORE_WRITE, ERROR_DATA, words);
        refuse_store(STORE_DB, STORE_READ, ERROR_DATA, words);
        check_untouched(data, size);
}

static void test_one_that_is_cut_short_is_refused(void **state) {
        size_t size;
        _cleanup_free_ char *data = healthy(&size);

        (void)state;
        assert_true(size > 40 * 4096);
        refuse_bytes(data, 0, "is empty");
        /* SQLite treats one byte as an empty file, because old versions wrote such files. */
        refuse_bytes(data, 1, "is empty");
        for (size_t cut = 2; cut < 300; cut++)
                refuse_bytes(data, cut, "truncated");
        for (size_t cut = 511; cut < size; cut += 3001)
                refuse_bytes(data, cut, "truncated");
        for (size_t cut = 4096; cut < size; cut += 5 * 4096)
                refuse_bytes(data, cut, "truncated");
        refuse_bytes(data, size - 1, "truncated");
        write_file(STORE_DB, data, size);
        store_free(open_store(STORE_DB, STORE_WRITE));
}

static void test_another_file_is_refused(void **state) {
        static const char text[] = "#!/bin/sh\necho this is no database, but long enough for one's "
                                   "header, which has a hundred bytes in it\n";
        size_t size;
        _cleanup_free_ char *data = healthy(&size);

        (void)state;
        refuse_bytes(text, sizeof(text), "is not a database");
        refuse_bytes(text, 3, "is not a database");
        data[68] ^= 1;
        refuse_bytes(data, size, "not holt's");
        data[68] ^= 1;
        data[63] = 9;
        refuse_bytes(data, size, "has version 9");
        data[63] = 0;
        refuse_bytes(data, size, "no version");
        data[63] = 1;
        data[17] = 1;
        refuse_bytes(data, size, "damaged");
}

static void test_another_programs_database_is_refused(void **state) {
        sqlite3 *db;

        (void)state;
        assert_int_equal(sqlite3_open(STORE_DB, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, "CREATE TABLE kv (a)", NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        refuse_store(STORE_DB, STORE_WRITE, ERROR_DATA, "not holt's");
}

static void change_schema(const char *sql) {
        sqlite3 *db;

        store_free(create_store());
        assert_int_equal(sqlite3_open(STORE_DB, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        refuse_store(STORE_DB, STORE_WRITE, ERROR_DATA, "does not have holt's tables");
        assert_int_equal(unlink(STORE_DB), 0);
}

static void test_another_schema_is_refused(void **state) {
        (void)state;
        change_schema("DROP TABLE meta");
        change_schema("DROP TRIGGER kv_delete");
        change_schema("CREATE TRIGGER more AFTER INSERT ON kv BEGIN DELETE FROM kv; END");
        change_schema("CREATE TABLE zzz (a)");
        change_schema("DROP TABLE totals; CREATE TABLE totalz (a)");
}

static int ignore_key(void *data, const char *key, size_t length) {
        (void)data;
        (void)key;
        (void)length;
        return 0;
}

static int ignore_history(void *data, const StoreHistory *row) {
        (void)data;
        (void)row;
        return 0;
}

static void check_kind(int r, int *damaged) {
        if (r >= 0)
                return;
        if (error.kind != ERROR_DATA)
                fail_msg("%s: %s", error_kind_name(error.kind), error.text);
        (*damaged)++;
}

/* Each call must succeed or fail with ERROR_DATA. */
static void use_damaged(int *damaged) {
        _cleanup_(store_freep) Store *store = NULL;
        uint64_t id;
        bool deleted;
        int r = store_open(STORE_DB, STORE_WRITE, &store, &error);

        check_kind(r, damaged);
        if (r < 0)
                return;
        (void)sqlite3_exec(store->db, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
        check_kind(store_kv_keys(store, "", "", 1000, ignore_key, NULL, &error), damaged);
        check_kind(store_history_list(store, 0, NULL, 1000, ignore_history, NULL, &error), damaged);
        check_kind(store_kv_set(store, "key 7", "x", 1, &error), damaged);
        check_kind(store_history_begin(store, "exec", "{}", time_epoch_ms(), &id, &error), damaged);
        check_kind(store_kv_delete(store, "key 8", &deleted, &error), damaged);
}

static void test_damage_is_told_where_it_is_met(void **state) {
        size_t size;
        _cleanup_free_ char *data = healthy(&size);
        unsigned seed = 1;
        int damaged = 0;

        (void)state;
        for (int i = 0; i < 300; i++) {
                /* Damages one page at a time, its header above all. */
                const size_t page = (size_t)rand_r(&seed) % (size / 4096);
                const size_t at = page * 4096 + (size_t)rand_r(&seed) % (i % 2 ? 4096 : 16);
                const char was = data[at];

                data[at] = (char)rand_r(&seed);
                write_file(STORE_DB, data, size);
                (void)unlink(STORE_DB "-wal");
                (void)unlink(STORE_DB "-shm");
                use_damaged(&damaged);
                data[at] = was;
        }
        assert_true(damaged > 50);
}

/* --- errors of the system --- */

static int failing_errno;

static ssize_t failing_pwrite(int fd, const void *data, size_t size, off_t at) {
        (void)fd;
        (void)data;
        (void)size;
        (void)at;
        errno = failing_errno;
        return -1;
}

/* SQLite allows replacing its system calls, for its own tests. */
static void exchange_pwrite(ssize_t (*function)(int, const void *, size_t, off_t)) {
        static const char *const names[] = { "pwrite", "pwrite64" };
        sqlite3_vfs *vfs = sqlite3_vfs_find("unix");

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                (void)vfs->xSetSystemCall(vfs, names[i], (sqlite3_syscall_ptr)function);
}

static void check_failure(Store *store, int errnum, ErrorKind kind, const char *words) {
        uint64_t id;

        failing_errno = errnum;
        exchange_pwrite(failing_pwrite);
        assert_int_equal(store_kv_set(store, "b", "1", 1, &error), -errnum);
        exchange_pwrite(NULL);
        assert_int_equal(error.kind, kind);
        assert_non_null(strstr(error.text, words));
        assert_string_not_equal(error.cure, "");
        /* No row is half written, and the next write works. */
        assert_false(has_key(store, "b"));
        set_key(store, "a");
        OK(store_history_begin(store, "exec", "{}", time_epoch_ms(), &id, &error));
}

static void test_a_disk_that_fails_is_named(void **state) {
        _cleanup_(store_freep) Store *store = create_store();

        (void)state;
        set_key(store, "a");
        check_failure(store, ENOSPC, ERROR_LIMIT, "the disk is full");
        check_failure(store, EDQUOT, ERROR_LIMIT, "the disk is full");
        check_failure(store, EIO, ERROR_SETUP, "the disk reported an error");
        check_failure(store, EFBIG, ERROR_SETUP, "the disk reported an error");
}

static void test_a_full_file_is_a_full_disk(void **state) {
        static const char value[100000];
        _cleanup_(store_freep) Store *store = create_store();

        (void)state;
        assert_int_equal(sqlite3_exec(store->db, "PRAGMA max_page_count = 30", NULL, NULL, NULL),
                         SQLITE_OK);
        assert_int_equal(store_kv_set(store, "a", value, sizeof(value), &error), -ENOSPC);
        assert_int_equal(error.kind, ERROR_LIMIT);
        assert_non_null(strstr(error.text, "the disk is full"));
        set_key(store, "b");
        assert_false(has_key(store, "a"));
}

static void test_another_writer_is_told_to_wait(void **state) {
        Store *store = create_store(), *other = open_store(STORE_DB, STORE_WRITE);
        Store *transaction = NULL;

        (void)state;
        (void)sqlite3_busy_timeout(other->db, 1);
        OK(store_begin(store, &transaction, &error));
        assert_int_equal(store_kv_set(other, "a", "1", 1, &error), -EBUSY);
        assert_int_equal(error.kind, ERROR_BUSY);
        store_rollbackp(&transaction);
        set_key(other, "a");
        store_free(other);
        store_free(store);
}

static void test_a_new_one_that_fails_leaves_nothing(void **state) {
        (void)state;
        store_free(open_store("other.db", STORE_CREATE));
        for (int i = 0; i < 2; i++) {
                failing_errno = ENOSPC;
                exchange_pwrite(failing_pwrite);
                refuse_store(STORE_DB, STORE_CREATE, ERROR_LIMIT, "the disk is full");
                exchange_pwrite(NULL);
                assert_int_equal(access(STORE_DB, F_OK), -1);
        }
        store_free(create_store());
}

static void test_results_have_a_kind(void **state) {
        static const struct {
                int rc, errnum;
                ErrorKind kind;
        } cases[] = {
                { SQLITE_CORRUPT_INDEX, EINVAL, ERROR_DATA },
                { SQLITE_NOTADB, EINVAL, ERROR_DATA },
                { SQLITE_ERROR, EINVAL, ERROR_DATA },
                { SQLITE_TOOBIG, EINVAL, ERROR_DATA },
                { SQLITE_NOMEM, ENOMEM, ERROR_SETUP },
                { SQLITE_IOERR_NOMEM, ENOMEM, ERROR_SETUP },
                { SQLITE_FULL, ENOSPC, ERROR_LIMIT },
                { SQLITE_BUSY_RECOVERY, EBUSY, ERROR_BUSY },
                { SQLITE_READONLY_DBMOVED, ENOENT, ERROR_MISSING },
                { SQLITE_READONLY_DIRECTORY, EACCES, ERROR_SETUP },
                { SQLITE_CANTOPEN, EIO, ERROR_SETUP },
                { SQLITE_IOERR_FSYNC, EIO, ERROR_SETUP },
                { SQLITE_INTERNAL, EINVAL, ERROR_SETUP },
        };
        _cleanup_(store_freep) Store *store = create_store();

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                assert_int_equal(store_error(store, cases[i].rc, "do it", &error),
                                 -cases[i].errnum);
                assert_int_equal(error.kind, cases[i].kind);
                if (cases[i].errnum != ENOMEM)
                        assert_non_null(strstr(error.text, "cannot do it in /"));
        }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter_directory, leave_directory)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_one_that_is_cut_short_is_refused),
                TEST(test_another_file_is_refused),
                TEST(test_another_programs_database_is_refused),
                TEST(test_another_schema_is_refused),
                TEST(test_damage_is_told_where_it_is_met),
                TEST(test_a_disk_that_fails_is_named),
                TEST(test_a_full_file_is_a_full_disk),
                TEST(test_another_writer_is_told_to_wait),
                TEST(test_a_new_one_that_fails_leaves_nothing),
                TEST(test_results_have_a_kind),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
