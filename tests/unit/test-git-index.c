/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "git/index.h"
#include "index-fixture.h"

static int read_all(const Bytes *bytes, GitIndex *ret) {
        Bytes whole = *bytes;

        bytes_put_zeros(&whole, whole.hash_size);
        return index_read_both(whole.data, whole.size, ret);
}

static void assert_links(const Bytes *bytes, const char *const *links) {
        GitIndex index = { 0 };
        size_t count = 0;

        assert_int_equal(read_all(bytes, &index), 0);
        for (; links[count]; count++) {
                assert_true(count < index.links.count);
                assert_string_equal(index.links.items[count], links[count]);
        }
        assert_int_equal(index.links.count, count);
        git_index_clear(&index);
}

static void assert_refused(const Bytes *bytes) {
        GitIndex index = { 0 };

        assert_int_equal(read_all(bytes, &index), -EBADMSG);
        assert_int_equal(index.links.count, 0);
}

static Bytes make_plain(size_t hash_size) {
        Bytes bytes = index_make_header(2, 3, hash_size);

        index_put_entry(&bytes, 0100644, "file");
        index_put_entry(&bytes, 0160000, "sub");
        index_put_entry(&bytes, 0160000, "vendor/other");
        return bytes;
}

static const char *const plain_links[] = { "sub", "vendor/other", NULL };

/* --- tests --- */

/* git uses the paths whatever kind of file exists there. */
static void test_paths_of_files_are_looked_at(void **state) {
        static const char *const paths[] = {
                "../file", "/file",       "./file", "a/../../file",  "a//file",
                "file/",   ".git/config", ".git",   "a/.GIT/config",
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                Bytes bytes = index_make_header(2, 1, 20);

                index_put_entry(&bytes, 0100644, paths[i]);
                assert_refused(&bytes);
        }
}

/* Only the part of a name that differs from the name before is checked. */
static void test_paths_are_looked_at_after_similar_ones(void **state) {
        static const struct {
                const char *before, *name;
                bool valid;
        } cases[] = {
                { "dir/file", "dir/file", true },     { "dir/file", "dir/fil", true },
                { "dir/file", "dir", true },          { "dir/file", "dir/file/other", true },
                { "a/b/c/d", "a/b/e", true },         { "dir/file", "dir/", false },
                { "dir/file", "dir/../file", false }, { "dir/file", "dir//file", false },
                { "dir/.gitx", "dir/.git", false },   { ".gitx/file", ".git/file", false },
                { "dir/..x", "dir/..", false },       { "a/b/.x/c", "a/b/./c", false },
                { "dir/.gi", "dir/.git", false },     { "dir/x", "dir/x/../y", false },
                { "dir/file", "/dir", false },
        };

        (void)state;
        for (size_t i = 0; i < 3 * ELEMENTSOF(cases); i++) {
                const char *before = cases[i / 3].before, *name = cases[i / 3].name;
                const uint32_t version = i % 3 == 0 ? 4 : 2;
                Bytes bytes = index_make_header(version, 2, 20);
                GitIndex index = { 0 };
                size_t kept = 0;

                while (name[kept] && name[kept] == before[kept])
                        kept++;
                if (version == 4) {
                        index_put_compressed(&bytes, 0100644, 0, before, strlen(before));
                        index_put_compressed(&bytes, 0100644, (uint8_t)(strlen(before) - kept),
                                             name + kept, strlen(name));
                } else {
                        index_put_entry(&bytes, 0100644, before);
                        index_put_entry(&bytes, 0100644, name);
                }
                if (i % 3 == 2)
                        index_put_more(&bytes);
                assert_int_equal(read_all(&bytes, &index), cases[i / 3].valid ? 0 : -EBADMSG);
                git_index_clear(&index);
        }
}

/* The bytes after a name, up to the next name, could be the beginning of that name. */
static void test_a_name_does_not_go_on_in_the_next_entry(void **state) {
        Bytes bytes = index_make_header(2, 2, 20);
        static const uint8_t name[4 + 6 + 20 + 8] = "d/fi\0\0\0\0\0\0"
                                                    "\0\0\0\0\0\0\0\0\0\0"
                                                    "\0\0\0\0\0\0\0\0\0\0"
                                                    "abcdefgh";

        (void)state;
        index_put_entry(&bytes, 0100644, "d/fi");
        assert_int_equal(bytes.size, 12 + 72);
        index_put_stat(&bytes, 0100644, sizeof(name));
        bytes_put(&bytes, name, sizeof(name));
        bytes_put_zeros(&bytes, 8 - (bytes.size - 12) % 8);
        bytes.entries_end = bytes.size;
        index_put_more(&bytes);
        assert_refused(&bytes);
}

static void test_gitlinks_are_found(void **state) {
        const Bytes sha1 = make_plain(20), sha256 = make_plain(32);

        (void)state;
        assert_links(&sha1, plain_links);
        assert_links(&sha256, plain_links);
}

static void test_the_repository_says_which_hash(void **state) {
        static const GitHash hashes[] = { GIT_SHA1, GIT_SHA256 };

        (void)state;
        for (size_t i = 0; i < 2; i++) {
                Bytes bytes = make_plain(hashes[i] == GIT_SHA1 ? 20 : 32);
                GitIndex index = { 0 };

                bytes_put_zeros(&bytes, bytes.hash_size);
                for (size_t j = 0; j < 2; j++)
                        assert_int_equal(
                                git_index_read(bytes.data, bytes.size, hashes[j], false, &index),
                                i == j ? 0 : -EBADMSG);
                git_index_clear(&index);
        }
}

static void test_compressed_names_are_put_together(void **state) {
        const char *const links[] = { "a/sub", "a/sum", NULL };
        Bytes bytes = index_make_header(4, 3, 20);

        (void)state;
        index_put_compressed(&bytes, 0160000, 0, "a/sub", 5);
        index_put_compressed(&bytes, 0100644, 1, "c", 5);
        index_put_compressed(&bytes, 0160000, 1, "m", 5);
        assert_links(&bytes, links);
}

static void test_a_name_that_cuts_more_than_there_is_is_refused(void **state) {
        Bytes bytes = index_make_header(4, 2, 20);

        (void)state;
        index_put_compressed(&bytes, 0160000, 0, "sub", 3);
        index_put_compressed(&bytes, 0160000, 4, "x", 1);
        assert_refused(&bytes);
}

static void test_a_cut_index_is_refused_wherever_it_is_cut(void **state) {
        Bytes whole = make_plain(20);

        (void)state;
        bytes_put_zeros(&whole, 20);
        for (size_t size = 0; size < whole.size; size++) {
                /* The copy is on the heap, so that reading past its end is detected. */
                uint8_t *copy = malloc(size ? size : 1);
                GitIndex index = { 0 };

                assert_non_null(copy);
                memcpy(copy, whole.data, size);
                assert_int_equal(git_index_read(copy, size, GIT_EITHER, false, &index), -EBADMSG);
                free(copy);
        }
}

static void test_unknown_versions_are_refused(void **state) {
        (void)state;
        for (uint32_t version = 0; version < 8; version++) {
                const Bytes bytes = index_make_header(version, 0, 20);

                if (version < 2 || version > 4)
                        assert_refused(&bytes);
        }
}

/* Only extensions may follow the entries, up to the last byte. */
static void test_bytes_that_are_no_extension_are_refused(void **state) {
        Bytes bytes = make_plain(20);

        (void)state;
        bytes_put_zeros(&bytes, 4);
        assert_refused(&bytes);
}

static Bytes make_with_blocks(uint32_t offset, uint32_t count, bool end) {
        Bytes bytes = make_plain(20), data = { 0 };

        bytes_put_number(&data, 1);
        bytes_put_number(&data, 12);
        bytes_put_number(&data, 1);
        bytes_put_number(&data, offset);
        bytes_put_number(&data, count);
        index_put_extension(&bytes, "IEOT", data.data, data.size);
        if (end)
                index_put_end(&bytes, (uint32_t)bytes.entries_end);
        return bytes;
}

/* git reads blocks in several threads, from the places in this extension. */
static void test_blocks_begin_where_the_entries_do(void **state) {
        const Bytes bytes = make_with_blocks(12 + 72, 2, true);
        const struct {
                uint32_t offset, count;
        } wrong[] = { { 12 + 71, 2 }, { 12 + 72, 1 }, { 12 + 72, 3 }, { 12, 2 }, { 4000, 2 } };

        (void)state;
        assert_links(&bytes, plain_links);
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                const Bytes other = make_with_blocks(wrong[i].offset, wrong[i].count, true);

                assert_refused(&other);
        }
}

/* Without EOIE, git reads all entries from the start. */
static void test_blocks_count_only_with_the_end(void **state) {
        const Bytes bytes = make_with_blocks(12, 2, false);

        (void)state;
        assert_links(&bytes, plain_links);
}

/* In version 4 a name builds on the one before, but git's thread knows no name before its block. */
static void test_a_block_begins_with_a_whole_name(void **state) {
        (void)state;
        for (uint8_t cut = 2; cut <= 4; cut++) {
                Bytes bytes = index_make_header(4, 2, 20), data = { 0 };

                index_put_compressed(&bytes, 0160000, 0, "sub1", 4);
                bytes_put_number(&data, 1);
                bytes_put_number(&data, 12);
                bytes_put_number(&data, 1);
                bytes_put_number(&data, (uint32_t)bytes.size);
                bytes_put_number(&data, 1);
                index_put_compressed(&bytes, 0160000, cut, "else", 8U - cut);
                index_put_extension(&bytes, "IEOT", data.data, data.size);
                index_put_end(&bytes, (uint32_t)bytes.entries_end);
                if (cut == 4)
                        assert_links(&bytes, (const char *const[]){ "sub1", "else", NULL });
                else
                        assert_refused(&bytes);
        }
}

/* git writes the list once. */
static void test_blocks_are_said_once(void **state) {
        const Bytes once = make_with_blocks(12 + 72, 2, false), plain = make_plain(20);
        Bytes twice = once;

        (void)state;
        bytes_put(&twice, once.data + plain.size, once.size - plain.size);
        assert_refused(&twice);
}

static Bytes make_with_end(uint32_t offset) {
        Bytes bytes = make_plain(20);

        index_put_end(&bytes, offset);
        return bytes;
}

static void test_the_end_is_where_the_entries_end(void **state) {
        const Bytes plain = make_plain(20);
        const Bytes right = make_with_end((uint32_t)plain.entries_end), wrong = make_with_end(12);
        Bytes hidden = make_plain(20);

        (void)state;
        assert_links(&right, plain_links);
        assert_refused(&wrong);
        /* git looks for EOIE at its place, even if that is inside another extension. */
        index_put_extension(&hidden, "TREE", right.data + plain.size, right.size - plain.size);
        assert_refused(&hidden);
}

static void test_a_split_index_names_its_other_part(void **state) {
        Bytes bytes = index_make_header(2, 1, 20);
        uint8_t data[28] = { 0 };
        GitIndex index = { 0 };

        (void)state;
        memset(data, 0xab, 20);
        index_put_entry(&bytes, 0160000, "");
        index_put_extension(&bytes, "link", data, sizeof(data));
        assert_int_equal(read_all(&bytes, &index), 0);
        assert_string_equal(index.shared, "abababababababababababababababababababab");
        assert_true(index.nameless);
        assert_int_equal(index.links.count, 0);
        git_index_clear(&index);
}

/* git reads the name up to the next zero, regardless of the length field. */
static void test_a_name_ends_where_it_says(void **state) {
        Bytes bytes = index_make_header(2, 1, 20);

        (void)state;
        index_put_stat(&bytes, 0160000, 2);
        bytes_put(&bytes, "sub", 3);
        bytes_put_zeros(&bytes, 5);
        assert_refused(&bytes);
}

static void test_paths_are_in_normal_form(void **state) {
        static const char *const others[] = { ".",    "..",    "./sub",  "sub/",  "a//sub",
                                              "/sub", "sub/.", "../sub", "a/../b" };
        char name[300] = "";

        (void)state;
        memset(name, 'n', sizeof(name) - 1);
        for (size_t i = 0; i <= sizeof(others) / sizeof(others[0]); i++) {
                const bool last = i == sizeof(others) / sizeof(others[0]);
                Bytes bytes = index_make_header(2, 1, 20);

                index_put_entry(&bytes, 0160000, last ? name : others[i]);
                assert_refused(&bytes);
        }
}

static void test_sparse_directories_are_named(void **state) {
        Bytes bytes = index_make_header(2, 1, 20), other = bytes;
        GitIndex index = { 0 };

        (void)state;
        index_put_entry(&bytes, 0040000, "a/b/");
        assert_int_equal(read_all(&bytes, &index), 0);
        assert_int_equal(index.trees.count, 1);
        assert_string_equal(index.trees.items[0], "a/b");
        git_index_clear(&index);
        index_put_entry(&other, 0040000, "a");
        assert_refused(&other);
}

static void test_there_is_a_bound(void **state) {
        enum { COUNT = GIT_INDEX_LINKS_MAX + 1, ENTRY = 72 };
        const size_t size = 12 + COUNT * (size_t)ENTRY + 20;
        uint8_t *whole = calloc(1, size);
        Bytes header = index_make_header(2, COUNT, 20), entry = { .hash_size = 20 };
        GitIndex index = { 0 };

        (void)state;
        assert_non_null(whole);
        index_put_entry(&entry, 0160000, "sub");
        assert_int_equal(entry.size, ENTRY);
        memcpy(whole, header.data, header.size);
        for (size_t i = 0; i < COUNT; i++)
                memcpy(whole + 12 + i * ENTRY, entry.data, ENTRY);
        assert_int_equal(git_index_read(whole, size, GIT_EITHER, false, &index), -E2BIG);
        free(whole);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_gitlinks_are_found),
                cmocka_unit_test(test_paths_of_files_are_looked_at),
                cmocka_unit_test(test_paths_are_looked_at_after_similar_ones),
                cmocka_unit_test(test_a_name_does_not_go_on_in_the_next_entry),
                cmocka_unit_test(test_the_repository_says_which_hash),
                cmocka_unit_test(test_compressed_names_are_put_together),
                cmocka_unit_test(test_a_name_that_cuts_more_than_there_is_is_refused),
                cmocka_unit_test(test_a_cut_index_is_refused_wherever_it_is_cut),
                cmocka_unit_test(test_unknown_versions_are_refused),
                cmocka_unit_test(test_bytes_that_are_no_extension_are_refused),
                cmocka_unit_test(test_blocks_begin_where_the_entries_do),
                cmocka_unit_test(test_blocks_count_only_with_the_end),
                cmocka_unit_test(test_a_block_begins_with_a_whole_name),
                cmocka_unit_test(test_blocks_are_said_once),
                cmocka_unit_test(test_the_end_is_where_the_entries_end),
                cmocka_unit_test(test_a_split_index_names_its_other_part),
                cmocka_unit_test(test_a_name_ends_where_it_says),
                cmocka_unit_test(test_paths_are_in_normal_form),
                cmocka_unit_test(test_sparse_directories_are_named),
                cmocka_unit_test(test_there_is_a_bound),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
