/* SPDX-License-Identifier: Apache-2.0 */
/* Tests history and audit. */
#include "store-fixture.h"

static Error error;

typedef struct Listing {
        char text[2048];
        uint64_t last_id;
        size_t count;
} Listing;

static void add_text(Listing *listing, uint64_t id, const char *text) {
        const size_t used = strlen(listing->text);

        /* Rows come newest first. */
        assert_true(listing->count == 0 || id < listing->last_id);
        listing->last_id = id;
        listing->count++;
        (void)snprintf(listing->text + used, sizeof(listing->text) - used, "%s ", text);
}

static int add_history(void *data, const StoreHistory *row) {
        char text[256];

        (void)snprintf(text, sizeof(text), "%s%s%s%s", row->name, row->params,
                       row->ended_ms > 0 ? ":" : "...", row->result ? row->result : "");
        assert_true(row->started_ms > 0);
        add_text(data, row->id, text);
        return 0;
}

static int add_audit(void *data, const StoreAudit *row) {
        char text[256];

        (void)snprintf(text, sizeof(text), "%s%s", row->kind, row->detail);
        assert_true(row->at_ms > 0);
        add_text(data, row->id, text);
        return 0;
}

static Listing list_history(Store *store, uint64_t before, const char *name, uint64_t limit) {
        Listing listing = { .text = "" };

        OK(store_history_list(store, before, name, limit, add_history, &listing, &error));
        return listing;
}

static Listing list_audit(Store *store, uint64_t before, const char *kind, uint64_t limit) {
        Listing listing = { .text = "" };

        OK(store_audit_list(store, before, kind, limit, add_audit, &listing, &error));
        return listing;
}

static uint64_t begin(Store *store, const char *name, const char *params) {
        uint64_t id = 0;

        OK(store_history_begin(store, name, params, time_epoch_ms(), &id, &error));
        assert_true(id > 0);
        return id;
}

static void add(Store *store, const char *name, const char *params) {
        OK(add_history_row(store, name, params, "r", 1, &error));
}

static void check_size(Store *store, StoreModule module, uint64_t rows, uint64_t bytes) {
        StoreSize size;

        OK(store_history_flush(store, &error));
        OK(store_size(store, module, &size, &error));
        assert_int_equal(size.rows, rows);
        assert_int_equal(size.bytes, bytes);
}

/* --- history --- */

static void test_history_has_beginnings_and_ends(void **state) {
        _cleanup_(store_freep) Store *store = create_store();
        uint64_t first, second;

        (void)state;
        first = begin(store, "exec", "1");
        second = begin(store, "exec", "2");
        OK(add_history_row(store, "kv.set", "3", "{}", 5, &error));
        assert_true(second > first);
        assert_string_equal(list_history(store, 0, NULL, 10).text, "kv.set3:{} exec2... exec1... ");
        OK(store_history_end(store, first, "{}", time_epoch_ms(), &error));
        assert_string_equal(list_history(store, 0, NULL, 10).text, "kv.set3:{} exec2... exec1:{} ");
        /* An entry ends only once. */
        OK(store_history_end(store, first, "again", time_epoch_ms(), &error));
        OK(store_history_end(store, 12345, "nobody's", time_epoch_ms(), &error));
        assert_string_equal(list_history(store, 0, NULL, 10).text, "kv.set3:{} exec2... exec1:{} ");
        check_size(store, STORE_HISTORY, 3, 3 + 2 + 2);
}

static void test_history_is_read_in_pieces(void **state) {
        _cleanup_(store_freep) Store *store = create_store();
        Listing piece;

        (void)state;
        for (int i = 0; i < 3; i++) {
                add(store, "a", "1");
                add(store, "b", "2");
        }
        piece = list_history(store, 0, NULL, 2);
        assert_string_equal(piece.text, "b2:r a1:r ");
        piece = list_history(store, piece.last_id, NULL, UINT64_MAX);
        assert_int_equal(piece.count, 4);
        piece = list_history(store, 0, "a", 2);
        assert_string_equal(piece.text, "a1:r a1:r ");
        piece = list_history(store, piece.last_id, "a", 2);
        assert_string_equal(piece.text, "a1:r ");
        assert_int_equal(list_history(store, piece.last_id, "a", 2).count, 0);
        assert_int_equal(list_history(store, UINT64_MAX, "c", 2).count, 0);
        assert_int_equal(list_history(store, 1, NULL, 2).count, 0);
}

static void test_oldest_history_that_has_ended_makes_room(void **state) {
        _cleanup_(store_freep) Store *store = create_store();
        uint64_t going;

        (void)state;
        store->caps[STORE_HISTORY].rows = 3;
        going = begin(store, "exec", "1");
        add(store, "a", "2");
        add(store, "a", "3");
        add(store, "a", "4");
        assert_string_equal(list_history(store, 0, NULL, 9).text, "a4:r a3:r exec1... ");
        OK(store_history_end(store, going, "r", time_epoch_ms(), &error));
        add(store, "exec", "5");
        add(store, "exec", "6");
        assert_string_equal(list_history(store, 0, NULL, 9).text, "exec6:r exec5:r a4:r ");
        check_size(store, STORE_HISTORY, 3, 6);
        /* The row has been dropped. */
        OK(store_history_end(store, going, "r", time_epoch_ms(), &error));
}

/* Code inside can add calls of tools without limit, but they only push out their own kind. */
static void test_a_flood_of_history_pushes_out_no_other(void **state) {
        _cleanup_(store_freep) Store *store = create_store();
        uint64_t going;

        (void)state;
        store->caps[STORE_HISTORY].rows = 10;
        add(store, "exec", "1");
        add(store, "exec", "2");
        add(store, "files.write", "3");
        for (int i = 0; i < 100; i++)
                add(store, "tool.call", "4");
        assert_int_equal(list_history(store, 0, NULL, 99).count, 10);
        add(store, "exec", "5");
        assert_string_equal(list_history(store, 0, "exec", 9).text, "exec5:r exec2:r exec1:r ");
        assert_int_equal(list_history(store, 0, "files.write", 9).count, 1);
        /* Running entries stay, however many exist. */
        store->caps[STORE_HISTORY].rows = 3;
        add(store, "b", "6");
        going = begin(store, "c", "7");
        (void)begin(store, "c", "8");
        add(store, "b", "9");
        assert_string_equal(list_history(store, 0, NULL, 9).text, "b9:r c8... c7... ");
        OK(store_history_end(store, going, "r", time_epoch_ms(), &error));
}

static void test_one_percent_goes_at_a_time(void **state) {
        _cleanup_(store_freep) Store *store = create_store();

        (void)state;
        store->caps[STORE_HISTORY].rows = 300;
        for (int i = 0; i < 300; i++)
                add(store, "a", "1");
        check_size(store, STORE_HISTORY, 300, 600);
        add(store, "a", "1");
        check_size(store, STORE_HISTORY, 298, 596);
}

static void test_history_that_goes_on_is_never_lost(void **state) {
        _cleanup_(store_freep) Store *store = create_store();
        uint64_t id = 7;

        (void)state;
        store->caps[STORE_HISTORY].rows = 2;
        (void)begin(store, "exec", "1");
        (void)begin(store, "exec", "2");
        assert_int_equal(store_history_begin(store, "exec", "3", time_epoch_ms(), &id, &error),
                         -ENOSPC);
        assert_int_equal(error.kind, ERROR_LIMIT);
        assert_int_equal(id, 7);
        assert_string_equal(list_history(store, 0, NULL, 9).text, "exec2... exec1... ");
}

static void test_history_that_a_crash_has_cut_short_makes_room(void **state) {
        Store *store = create_store();

        (void)state;
        (void)begin(store, "exec", "1");
        (void)begin(store, "exec", "2");
        store_free(store);
        store = open_store(STORE_DB, STORE_WRITE);
        assert_string_equal(list_history(store, 0, NULL, 9).text, "exec2... exec1... ");
        store->caps[STORE_HISTORY].rows = 2;
        (void)begin(store, "exec", "3");
        assert_string_equal(list_history(store, 0, NULL, 9).text, "exec3... exec2... ");
        store_free(store);
}

static void test_bytes_of_history_make_room(void **state) {
        _cleanup_(store_freep) Store *store = create_store();

        (void)state;
        store->caps[STORE_HISTORY].bytes = 20;
        for (int i = 0; i < 10; i++)
                add(store, "a", "1");
        check_size(store, STORE_HISTORY, 10, 20);
        add(store, "a", "1234567");
        check_size(store, STORE_HISTORY, 7, 20);
        assert_string_equal(list_history(store, 0, NULL, 1).text, "a1234567:r ");
}

static void test_texts_have_a_limit(void **state) {
        _cleanup_(store_freep) Store *store = create_store();
        _cleanup_free_ char *text = malloc(STORE_TEXT_MAX + 2);
        uint64_t id;

        (void)state;
        memset(text, 'x', STORE_TEXT_MAX + 1);
        text[STORE_TEXT_MAX + 1] = '\0';
        assert_int_equal(store_history_begin(store, "a", text, time_epoch_ms(), &id, &error),
                         -E2BIG);
        assert_int_equal(error.kind, ERROR_LIMIT);
        assert_int_equal(store_history_end(store, 1, text, time_epoch_ms(), &error), -E2BIG);
        assert_int_equal(add_history_row(store, "a", "1", text, 1, &error), -E2BIG);
        assert_int_equal(store_audit_add(store, "a", text, 1, &error), -E2BIG);
        text[STORE_TEXT_MAX] = '\0';
        OK(add_history_row(store, "a", text, text, 1, &error));
        OK(store_audit_add(store, "a", text, 1, &error));
        check_size(store, STORE_HISTORY, 1, 2 * STORE_TEXT_MAX);
        check_size(store, STORE_AUDIT, 1, STORE_TEXT_MAX);
}

/* --- audit --- */

static void test_audit_is_read_in_pieces(void **state) {
        _cleanup_(store_freep) Store *store = create_store();
        Listing piece;

        (void)state;
        OK(store_audit_add(store, "denial", "1", 1, &error));
        OK(store_audit_add(store, "kill", "2", 1, &error));
        OK(store_audit_add(store, "denial", "3", 1, &error));
        piece = list_audit(store, 0, NULL, 2);
        assert_string_equal(piece.text, "denial3 kill2 ");
        assert_string_equal(list_audit(store, piece.last_id, NULL, 2).text, "denial1 ");
        assert_string_equal(list_audit(store, 0, "denial", 9).text, "denial3 denial1 ");
        check_size(store, STORE_AUDIT, 3, 3);
}

static void test_oldest_audit_makes_room(void **state) {
        _cleanup_(store_freep) Store *store = create_store();

        (void)state;
        store->caps[STORE_AUDIT].rows = 2;
        OK(store_audit_add(store, "a", "1", 1, &error));
        OK(store_audit_add(store, "a", "2", 1, &error));
        OK(store_audit_add(store, "a", "3", 1, &error));
        assert_string_equal(list_audit(store, 0, NULL, 9).text, "a3 a2 ");
        check_size(store, STORE_AUDIT, 2, 2);
        store->caps[STORE_AUDIT] = (StoreSize){ 100, 6 };
        OK(store_audit_add(store, "a", "45678", 1, &error));
        assert_string_equal(list_audit(store, 0, NULL, 9).text, "a45678 a3 ");
}

/* A flood pushes out only its own kind, however long it lasts. */
static void test_a_flood_of_one_kind_pushes_out_no_other(void **state) {
        _cleanup_(store_freep) Store *store = create_store();

        (void)state;
        store->caps[STORE_AUDIT].rows = 4;
        OK(store_audit_add(store, "denial", "1", 1, &error));
        OK(store_audit_add(store, "kill", "2", 1, &error));
        for (char n[] = "3"; n[0] <= '9'; n[0]++)
                OK(store_audit_add(store, "tool", n, 1, &error));
        assert_string_equal(list_audit(store, 0, NULL, 9).text, "tool9 tool8 kill2 denial1 ");
        /* Among kinds of equal size, the oldest row goes. */
        store->caps[STORE_AUDIT].rows = 2;
        OK(store_audit_add(store, "kill", "x", 1, &error));
        assert_string_equal(list_audit(store, 0, NULL, 9).text, "killx tool9 ");
}

static void test_both_are_written_or_neither(void **state) {
        _cleanup_(store_freep) Store *store = create_store();
        _cleanup_free_ char *text = calloc(STORE_TEXT_MAX + 2, 1);
        const StoreHistory row = {
                .name = "a", .params = "1", .result = "2", .started_ms = 5, .ended_ms = 6
        };

        (void)state;
        memset(text, 'x', STORE_TEXT_MAX + 1);
        OK(store_audited_add(store, &row, "tool", "3", &error));
        assert_int_equal(store_audited_add(store, &row, "tool", text, &error), -E2BIG);
        check_size(store, STORE_HISTORY, 1, 2);
        check_size(store, STORE_AUDIT, 1, 1);
        assert_string_equal(list_audit(store, 0, NULL, 9).text, "tool3 ");
        OK(add_history_row(store, "b", "1", "2", 5, &error)); /* no transaction is left open */
}

static int refuse_row(void *data, const StoreAudit *row) {
        (void)data;
        (void)row;
        return -ECANCELED;
}

static void test_listing_ends_when_asked_to(void **state) {
        _cleanup_(store_freep) Store *store = create_store();

        (void)state;
        OK(store_audit_add(store, "a", "1", 1, &error));
        assert_int_equal(store_audit_list(store, 0, NULL, 9, refuse_row, NULL, &error), -ECANCELED);
        assert_string_equal(list_audit(store, 0, NULL, 9).text, "a1 ");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter_directory, leave_directory)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_history_has_beginnings_and_ends),
                TEST(test_history_is_read_in_pieces),
                TEST(test_oldest_history_that_has_ended_makes_room),
                TEST(test_one_percent_goes_at_a_time),
                TEST(test_history_that_goes_on_is_never_lost),
                TEST(test_history_that_a_crash_has_cut_short_makes_room),
                TEST(test_bytes_of_history_make_room),
                TEST(test_texts_have_a_limit),
                TEST(test_audit_is_read_in_pieces),
                TEST(test_a_flood_of_history_pushes_out_no_other),
                TEST(test_oldest_audit_makes_room),
                TEST(test_a_flood_of_one_kind_pushes_out_no_other),
                TEST(test_both_are_written_or_neither),
                TEST(test_listing_ends_when_asked_to),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
