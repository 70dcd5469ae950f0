/* SPDX-License-Identifier: Apache-2.0 */
#include "store-fixture.h"

static Error error;

static void set(Store *store, const char *key, const char *value) {
        OK(store_kv_set(store, key, value, strlen(value), &error));
}

static void check(Store *store, const char *key, const void *value, size_t length) {
        _cleanup_free_ char *found = NULL;
        size_t found_length = 99;

        OK(store_kv_get(store, key, &found, &found_length, &error));
        assert_int_equal(found_length, length);
        assert_memory_equal(found, value, length);
        assert_int_equal(found[length], '\0');
}

static void test_values_are_any_bytes(void **state) {
        _cleanup_(store_freep) Store *store = create_store();

        (void)state;
        set(store, "a", "one");
        check(store, "a", "one", 3);
        set(store, "a", "another");
        check(store, "a", "another", 7);
        OK(store_kv_set(store, "nul", "\0x\0\xff", 4, &error));
        check(store, "nul", "\0x\0\xff", 4);
        OK(store_kv_set(store, "empty", NULL, 0, &error));
        check(store, "empty", "", 0);
}

static void test_missing_keys_are_an_error(void **state) {
        _cleanup_(store_freep) Store *store = create_store();
        char *value = NULL;
        size_t length;
        bool deleted = true;

        (void)state;
        assert_int_equal(store_kv_get(store, "no\n", &value, &length, &error), -ENOENT);
        assert_int_equal(error.kind, ERROR_NO_KEY);
        assert_non_null(strstr(error.text, "\"no\\x0a\""));
        assert_null(value);
        OK(store_kv_delete(store, "no", &deleted, &error));
        assert_false(deleted);
        set(store, "no", "yes");
        OK(store_kv_delete(store, "no", &deleted, &error));
        assert_true(deleted);
        assert_int_equal(store_kv_get(store, "no", &value, &length, &error), -ENOENT);
}

static void refuse(Store *store, const char *key, size_t length, ErrorKind kind, int r) {
        static char value[STORE_VALUE_MAX + 1];

        assert_int_equal(store_kv_set(store, key, value, length, &error), r);
        assert_int_equal(error.kind, kind);
        assert_int_equal(error.errnum, 0);
}

static void test_keys_and_values_have_limits(void **state) {
        _cleanup_(store_freep) Store *store = create_store();
        char key[STORE_KEY_MAX + 2];

        (void)state;
        memset(key, 'k', sizeof(key));
        key[STORE_KEY_MAX + 1] = '\0';
        refuse(store, key, 1, ERROR_LIMIT, -EINVAL);
        refuse(store, "", 1, ERROR_USAGE, -EINVAL);
        refuse(store, "\xff", 1, ERROR_USAGE, -EINVAL);
        refuse(store, "x\xc0\x80", 1, ERROR_USAGE, -EINVAL);
        refuse(store, "a", STORE_VALUE_MAX + 1, ERROR_LIMIT, -EINVAL);
        key[STORE_KEY_MAX] = '\0';
        set(store, key, "1");
        _cleanup_free_ char *largest = calloc(1, STORE_VALUE_MAX);
        OK(store_kv_set(store, key, largest, STORE_VALUE_MAX, &error));
        check(store, key, largest, STORE_VALUE_MAX);
}

/* --- caps --- */

static void check_size(Store *store, uint64_t rows, uint64_t bytes) {
        StoreSize size;

        OK(store_size(store, STORE_KV, &size, &error));
        assert_int_equal(size.rows, rows);
        assert_int_equal(size.bytes, bytes);
}

static void test_totals_follow_every_write(void **state) {
        _cleanup_(store_freep) Store *store = create_store();
        bool deleted;

        (void)state;
        check_size(store, 0, 0);
        set(store, "ab", "123");
        set(store, "\xc3\xa4", "\xc3\xa4"); /* bytes, not characters */
        check_size(store, 2, 9);
        set(store, "ab", "1");
        check_size(store, 2, 7);
        OK(store_kv_delete(store, "ab", &deleted, &error));
        OK(store_kv_delete(store, "ab", &deleted, &error));
        check_size(store, 1, 4);
}

static void test_keys_end_at_their_cap(void **state) {
        _cleanup_(store_freep) Store *store = create_store();
        bool deleted;

        (void)state;
        store->caps[STORE_KV].rows = 2;
        set(store, "a", "1");
        set(store, "b", "1");
        refuse(store, "c", 1, ERROR_LIMIT, -ENOSPC);
        assert_non_null(strstr(error.text, "2 keys"));
        assert_string_not_equal(error.cure, "");
        set(store, "b", "22");
        OK(store_kv_delete(store, "a", &deleted, &error));
        set(store, "c", "1");
        check_size(store, 2, 5);
}

static void test_bytes_end_at_their_cap(void **state) {
        _cleanup_(store_freep) Store *store = create_store();

        (void)state;
        store->caps[STORE_KV].bytes = 10;
        set(store, "a", "123456789");
        refuse(store, "b", 0, ERROR_LIMIT, -ENOSPC);
        refuse(store, "a", 10, ERROR_LIMIT, -ENOSPC);
        check(store, "a", "123456789", 9);
        set(store, "a", "1234567");
        set(store, "b", "1");
        check_size(store, 2, 10);
        /* The limit holds even if more is stored already. */
        store->caps[STORE_KV].bytes = 3;
        set(store, "a", "123456");
        refuse(store, "a", 7, ERROR_LIMIT, -ENOSPC);
        check_size(store, 2, 9);
}

/* --- listing --- */

typedef struct Listing {
        char text[512];
        size_t stop; /* stop after so many; 0 for never */
        size_t count;
} Listing;

static int add_key(void *data, const char *key, size_t value_length) {
        Listing *listing = data;
        const size_t used = strlen(listing->text);

        (void)snprintf(listing->text + used, sizeof(listing->text) - used, "%s=%zu ", key,
                       value_length);
        return ++listing->count == listing->stop ? -ECANCELED : 0;
}

static void check_keys(Store *store, const char *prefix, const char *after, uint64_t limit,
                       const char *keys) {
        Listing listing = { .text = "" };

        OK(store_kv_keys(store, prefix, after, limit, add_key, &listing, &error));
        assert_string_equal(listing.text, keys);
}

static void test_keys_come_in_byte_order(void **state) {
        static const char *const keys[] = { "b",  "a/2",  "a",       "\xf4\x8f\xbf\xbf", "a0",
                                            "A",  "a/1",  "a/",      "\xc3\xa4",         "a%",
                                            "a_", "\x7f", "\xc3\xa5" };
        _cleanup_(store_freep) Store *store = create_store();

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                OK(store_kv_set(store, keys[i], "1234", i % 5, &error));
        check_keys(store, "", "", 100,
                   "A=0 a=2 a%=4 a/=2 a/1=1 a/2=1 a0=4 a_=0 b=0 \x7f=1 \xc3\xa4=3 \xc3\xa5=2 "
                   "\xf4\x8f\xbf\xbf=3 ");
        check_keys(store, "a/", "", 100, "a/=2 a/1=1 a/2=1 ");
        check_keys(store, "a/", "a/", 100, "a/1=1 a/2=1 ");
        check_keys(store, "a/", "a/1", 100, "a/2=1 ");
        check_keys(store, "a/", "a/1z", 100, "a/2=1 ");
        check_keys(store, "a/", "A", 1, "a/=2 ");
        check_keys(store, "a/", "z", 100, "");
        check_keys(store, "a%", "", 100, "a%=4 ");
        check_keys(store, "\x7f", "", 100, "\x7f=1 ");
        check_keys(store, "\xc3", "", 100, "\xc3\xa4=3 \xc3\xa5=2 ");
        check_keys(store, "\xff", "", 100, "");
        check_keys(store, "a\xff", "", 100, "");
        check_keys(store, "", "a", 2, "a%=4 a/=2 ");
        check_keys(store, "", "\xc3\xa5", UINT64_MAX, "\xf4\x8f\xbf\xbf=3 ");
        check_keys(store, "", "", 0, "");
}

static void test_longest_prefix_is_that_of_a_key(void **state) {
        _cleanup_(store_freep) Store *store = create_store();
        char key[STORE_KEY_MAX + 2];
        Listing listing = { .text = "" };

        (void)state;
        memset(key, 'k', sizeof(key));
        key[STORE_KEY_MAX + 1] = '\0';
        check_keys(store, key, "", 10, "");
        check_keys(store, "", key, 10, "");
        key[STORE_KEY_MAX] = '\0';
        set(store, key, "");
        OK(store_kv_keys(store, key, "", 10, add_key, &listing, &error));
        assert_int_equal(listing.count, 1);
}

static void test_listing_ends_when_asked_to(void **state) {
        _cleanup_(store_freep) Store *store = create_store();
        Listing listing = { .stop = 2 };

        (void)state;
        set(store, "a", "");
        set(store, "b", "");
        set(store, "c", "");
        assert_int_equal(store_kv_keys(store, "", "", 9, add_key, &listing, &error), -ECANCELED);
        assert_string_equal(listing.text, "a=0 b=0 ");
        check_keys(store, "", "", 9, "a=0 b=0 c=0 ");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter_directory, leave_directory)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_values_are_any_bytes),        TEST(test_missing_keys_are_an_error),
                TEST(test_keys_and_values_have_limits), TEST(test_totals_follow_every_write),
                TEST(test_keys_end_at_their_cap),       TEST(test_bytes_end_at_their_cap),
                TEST(test_keys_come_in_byte_order),     TEST(test_longest_prefix_is_that_of_a_key),
                TEST(test_listing_ends_when_asked_to),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
