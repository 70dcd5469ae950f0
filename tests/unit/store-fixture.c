/* SPDX-License-Identifier: Apache-2.0 */
#include "store-fixture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

void ok(int r, const Error *error) {
        if (r < 0)
                fail_msg("%s (%d)", error->text, r);
}

Store *open_store(const char *path, StoreMode mode) {
        Store *store = NULL;
        Error error;

        OK(store_open(path, mode, &store, &error));
        assert_non_null(store);
        assert_int_equal(sqlite3_exec(store->db, "PRAGMA synchronous = OFF", NULL, NULL, NULL),
                         SQLITE_OK);
        return store;
}

Store *create_store(void) {
        return open_store(STORE_DB, STORE_CREATE);
}

void refuse_store(const char *path, StoreMode mode, ErrorKind kind, const char *words) {
        Store *store = NULL;
        Error error;

        if (store_open(path, mode, &store, &error) >= 0)
                fail_msg("%s has been opened: %s", path, words);
        assert_null(store);
        if (error.kind != kind)
                fail_msg("%s, not %s: %s", error_kind_name(error.kind), error_kind_name(kind),
                         error.text);
        if (!strstr(error.text, words) && !strstr(error.cure, words))
                fail_msg("\"%s\" is not in \"%s\", \"%s\"", words, error.text, error.cure);
        if (kind == ERROR_DATA)
                assert_string_not_equal(error.cure, "");
}

char *read_file(const char *path, size_t *ret_size) {
        _cleanup_close_ int fd = open(path, O_RDONLY);
        struct stat st;
        char *data;

        assert_true(fd >= 0);
        assert_int_equal(fstat(fd, &st), 0);
        data = malloc((size_t)st.st_size + 1);
        assert_non_null(data);
        assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
        *ret_size = (size_t)st.st_size;
        return data;
}

void write_file(const char *path, const void *data, size_t size) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, data, size), size);
}

void set_key(Store *store, const char *key) {
        Error error;

        OK(store_kv_set(store, key, "1", 1, &error));
}

bool has_key(Store *store, const char *key) {
        _cleanup_free_ char *value = NULL;
        size_t length;
        Error error;
        int r = store_kv_get(store, key, &value, &length, &error);

        if (r != -ENOENT)
                OK(r);
        return r == 0;
}

int add_history_row(Store *store, const char *name, const char *params, const char *result,
                    uint64_t started_ms, Error *reterr) {
        const StoreHistory row = { .name = name,
                                   .params = params,
                                   .result = result,
                                   .started_ms = started_ms,
                                   .ended_ms = started_ms + 1 };

        return store_history_put(store, &row, reterr);
}
