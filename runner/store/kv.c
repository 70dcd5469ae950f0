/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store-internal.h"

#include <errno.h>
#include <string.h>

#include "base/utf8.h"

enum { KV_SIZES, KV_SET, KV_GET, KV_DELETE, KV_KEYS, KV_MAX };

static const Statement statements[] = {
        [KV_SIZES] = { "look for a key", "SELECT length(value) FROM kv WHERE key = ?1" },
        [KV_SET] = { "set a key", "INSERT INTO kv (key, value) VALUES (?1, ?2)"
                                  " ON CONFLICT (key) DO UPDATE SET value = excluded.value" },
        [KV_GET] = { "get a key", "SELECT value FROM kv WHERE key = ?1" },
        [KV_DELETE] = { "delete a key", "DELETE FROM kv WHERE key = ?1" },
        [KV_KEYS] = { "list the keys", "SELECT CAST(key AS TEXT), length(value) FROM kv"
                                       " WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3" },
};
static_assert(ELEMENTSOF(statements) == KV_MAX, "every statement is in the table");

static const StatementTable kv = { STORE_KV, statements, KV_MAX };

/* --- keys --- */

static bool is_utf8(const char *s, size_t length) {
        while (length > 0) {
                const size_t n = utf8_sequence(s, length);

                if (n == 0)
                        return false;
                s += n;
                length -= n;
        }
        return true;
}

static int check_key(const char *key, size_t *ret_length, Error *reterr) {
        const size_t length = strlen(key);

        if (length == 0) {
                (void)error_set(reterr, ERROR_USAGE, 0, "a key cannot be empty");
                return error_cure(reterr, -EINVAL, "A key has 1 to %d bytes.", STORE_KEY_MAX);
        }
        if (length > STORE_KEY_MAX)
                return store_limit(reterr, EINVAL, "Choose a shorter one.",
                                   "the key has %zu bytes; the limit is %d", length, STORE_KEY_MAX);
        if (!is_utf8(key, length))
                return error_set(reterr, ERROR_USAGE, 0, "a key must be UTF-8");
        *ret_length = length;
        return 0;
}

/* --- one key --- */

/* Finds a key. *ret_size is the size of its value, *ret_there whether it exists. */
static int kv_find(Store *store, const char *key, size_t length, uint64_t *ret_size,
                   bool *ret_there, Error *reterr) {
        _cleanup_(query_end) Query query = { 0 };
        int r = query_first(store, &kv, KV_SIZES, VALUES(BLOB(key, length)), &query, reterr);

        if (r < 0)
                return r;
        *ret_there = r > 0;
        *ret_size = r > 0 ? query_number(&query, 0) : 0;
        return 0;
}

/* Checks by the totals whether the key may get a value of that length. */
static int kv_check_room(Store *store, const char *key, size_t key_length, size_t length,
                         Error *reterr) {
        static const char cure[] = "Delete keys that you do not need.";
        const StoreSize *cap = &store->caps[STORE_KV];
        uint64_t old, added;
        StoreSize size = { 0 };
        bool there;
        int r;

        r = kv_find(store, key, key_length, &old, &there, reterr);
        if (r == 0)
                r = store_size(store, STORE_KV, &size, reterr);
        if (r < 0)
                return r;
        if (!there && size.rows >= cap->rows)
                return store_limit(reterr, ENOSPC, cure,
                                   "the session has %llu keys, which is the limit",
                                   (unsigned long long)cap->rows);
        /* A value may always be replaced by a smaller one, even beyond the limit. */
        added = there ? 0 : key_length;
        if (length + added > old && size.bytes - old + length + added > cap->bytes)
                return store_limit(reterr, ENOSPC, cure,
                                   "the keys and values of the session would have more than %llu "
                                   "bytes together",
                                   (unsigned long long)cap->bytes);
        return 0;
}

int store_kv_set(Store *store, const char *key, const void *value, size_t length, Error *reterr) {
        _cleanup_(store_rollbackp) Store *transaction = NULL;
        size_t key_length = 0;
        int r;

        r = check_key(key, &key_length, reterr);
        if (r < 0)
                return r;
        if (length > STORE_VALUE_MAX)
                return store_limit(reterr, EINVAL, "Store the value in a file of the session.",
                                   "the value has %zu bytes; the limit is %d", length,
                                   STORE_VALUE_MAX);
        r = store_begin(store, &transaction, reterr);
        if (r == 0)
                r = kv_check_room(store, key, key_length, length, reterr);
        if (r == 0)
                r = statement_run(store, &kv, KV_SET,
                                  VALUES(BLOB(key, key_length), BLOB(value, length)), reterr);
        return r < 0 ? r : store_commit(&transaction, reterr);
}

static int no_key(const char *key, Error *reterr) {
        char quoted[256];

        (void)error_set(reterr, ERROR_NO_KEY, 0, "the session has no key \"%s\"",
                        str_quote(key, quoted, sizeof(quoted)));
        return -ENOENT;
}

int store_kv_get(Store *store, const char *key, char **ret, size_t *ret_length, Error *reterr) {
        _cleanup_(query_end) Query query = { 0 };
        const void *value;
        size_t length;
        char *copy;
        int r;

        r = query_first(store, &kv, KV_GET, VALUES(BLOB(key, strlen(key))), &query, reterr);
        if (r < 0)
                return r;
        if (r == 0)
                return no_key(key, reterr);
        r = query_blob(&query, 0, &value, &length, reterr);
        if (r < 0)
                return r;
        copy = malloc(length + 1);
        if (!copy)
                return error_oom(reterr);
        memcpy(copy, value, length);
        copy[length] = '\0';
        *ret = copy;
        *ret_length = length;
        return 0;
}

int store_kv_delete(Store *store, const char *key, bool *ret_deleted, Error *reterr) {
        int r = statement_run(store, &kv, KV_DELETE, VALUES(BLOB(key, strlen(key))), reterr);

        if (r < 0)
                return r;
        *ret_deleted = sqlite3_changes64(store->db) > 0;
        return 0;
}

/* --- listing --- */

/* Changes prefix to the first key after all keys that start with it. 0xff is not a byte of UTF-8,
 * so "\xff" sorts after all keys. */
static size_t kv_successor(char *prefix, size_t length) {
        while (length > 0 && prefix[length - 1] == '\xff')
                length--;
        if (length > 0)
                prefix[length - 1]++;
        else
                prefix[length++] = '\xff';
        return length;
}

int store_kv_keys(Store *store, const char *prefix, const char *after, uint64_t limit,
                  StoreKeyFn fn, void *data, Error *reterr) {
        _cleanup_(query_end) Query query = { 0 };
        const bool behind = strcmp(after, prefix) >= 0;
        /* In byte order, the first text after `after` is `after` with one more NUL. */
        const char *from = behind ? after : prefix;
        const size_t from_length = strlen(from) + (behind && *after);
        const char *key = NULL;
        char end[STORE_KEY_MAX + 1];
        size_t end_length = strlen(prefix);
        int r;

        if (end_length > STORE_KEY_MAX)
                return 0;
        memcpy(end, prefix, end_length);
        end_length = kv_successor(end, end_length);
        r = query_start(store, &kv, KV_KEYS,
                        VALUES(BLOB(from, from_length), BLOB(end, end_length), NUMBER(limit)),
                        &query, reterr);
        while (r >= 0 && (r = query_next(&query, reterr)) > 0) {
                r = query_text(&query, 0, &key, reterr);
                if (r == 0)
                        r = fn(data, key, (size_t)query_number(&query, 1));
        }
        return r;
}
