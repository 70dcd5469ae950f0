/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "git/index.h"
#include "index-fixture.h"

/* The entries of a large index, each 100th a gitlink. Two blocks begin in the middle. */
enum {
        LARGE = 4000,
        LARGE_ENTRY = 88,
        LARGE_END = 12 + LARGE * LARGE_ENTRY,
        LARGE_EXTENSIONS = 8 + 4 + 2 * 8 + 8 + 4 + 20,
};

static uint8_t *make_large(size_t *ret_size) {
        const size_t size = LARGE_END + LARGE_EXTENSIONS + 20;
        uint8_t *whole = calloc(1, size);
        Bytes header = index_make_header(2, LARGE, 20), blocks = { 0 };
        Bytes extensions = { .hash_size = 20 };

        assert_non_null(whole);
        memcpy(whole, header.data, header.size);
        for (int i = 0; i < LARGE; i++) {
                Bytes entry = { .hash_size = 20 };
                char name[32];

                (void)snprintf(name, sizeof(name), "part-%03d/file-%06d", i / 16, i);
                index_put_entry(&entry, i % 100 ? 0100644 : 0160000, name);
                assert_int_equal(entry.size, LARGE_ENTRY);
                memcpy(whole + 12 + i * LARGE_ENTRY, entry.data, LARGE_ENTRY);
        }
        bytes_put_number(&blocks, 1);
        bytes_put_number(&blocks, 12);
        bytes_put_number(&blocks, LARGE / 2);
        bytes_put_number(&blocks, (uint32_t)(12 + LARGE / 2 * LARGE_ENTRY));
        bytes_put_number(&blocks, LARGE / 2);
        index_put_extension(&extensions, "IEOT", blocks.data, blocks.size);
        index_put_end(&extensions, LARGE_END);
        assert_int_equal(extensions.size, LARGE_EXTENSIONS);
        memcpy(whole + LARGE_END, extensions.data, extensions.size);
        *ret_size = size;
        return whole;
}

static void test_a_large_file_is_read_in_pieces(void **state) {
        GitIndex index = { 0 };
        size_t size;
        uint8_t *whole = make_large(&size);

        (void)state;
        assert_int_equal(index_read_both(whole, size, &index), 0);
        assert_int_equal(index.links.count, LARGE / 100);
        assert_string_equal(index.links.items[39], "part-243/file-003900");
        git_index_clear(&index);
        whole[LARGE_END + 8 + 4 + 8 + 3] ^= 1; /* The offset of the second block. */
        assert_int_equal(index_read_both(whole, size, &index), -EBADMSG);
        free(whole);
}

/* Most entries of a large index are read by a faster way, which is not used if every name is
 * wanted. Both must refuse the same bytes, wherever one has changed. */
static void test_siblings_are_checked_like_other_entries(void **state) {
        static const uint8_t bytes[] = { 0, '/', '.', 1, 0x80, 0xff };
        const int rounds = getenv("HOLT_TEST_FULL") ? 4000 : 600;
        size_t size;
        uint8_t *whole = make_large(&size);

        (void)state;
        for (int i = 0; i < rounds; i++) {
                /* Some prime, so that all bytes of an entry have their turn. */
                const size_t at = 12 + (size_t)i * 8009 % (LARGE_END - 12);
                const uint8_t before = whole[at];
                GitIndex some = { 0 }, all = { 0 };
                int r;

                whole[at] = bytes[i % (int)sizeof(bytes)];
                r = git_index_read(whole, size, GIT_SHA1, true, &all);
                assert_int_equal(git_index_read(whole, size, GIT_SHA1, false, &some), r);
                assert_int_equal(all.links.count, r == 0 ? LARGE : 0);
                whole[at] = before;
                git_index_clear(&some);
                git_index_clear(&all);
        }
        free(whole);
}

/* The file may become shorter after fstat(2). */
static void test_a_file_that_has_become_shorter_is_refused(void **state) {
        size_t size;
        uint8_t *whole = make_large(&size);
        GitIndex index = { 0 };

        (void)state;
        for (size_t there = 0; there < size; there += 997)
                assert_int_equal(index_read_file(whole, there, size, &index), -EBADMSG);
        free(whole);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_large_file_is_read_in_pieces),
                cmocka_unit_test(test_siblings_are_checked_like_other_entries),
                cmocka_unit_test(test_a_file_that_has_become_shorter_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
