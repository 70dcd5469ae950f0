/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file-id.h"
#include "base/util.h"

enum { TRIES = 1000 };

static int make_place(void **state) {
        char *path = strdup("/tmp/holt-test-file-id-XXXXXX");

        *state = mkdtemp(path);
        return *state ? chdir(*state) : -1;
}

static int remove_place(void **state) {
        int r = chdir("/") < 0 ? -1 : rmdir(*state);

        free(*state);
        return r;
}

static FileId get(const char *path) {
        _cleanup_close_ int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        FileId id;

        assert_true(fd >= 0);
        assert_int_equal(file_id_get(fd, &id), 0);
        return id;
}

static void write_file(const char *path) {
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        (void)close(fd);
}

static void test_as_text(void **state) {
        static const char *const bad[] = { "",
                                           "1",
                                           "1:2:3",
                                           "a b c d e f",
                                           "1:2:00:4:5:6:7:8:",
                                           "1:2:00112233445566778899aabbccddeeff:4:5:6:7:8:0",
                                           "1:2:00112233445566778899aabbccddeeff:4:5:6:7:8:0g",
                                           "1:2:00112233445566778899aabbccddeeff:4:5:6:7" };
        FileId id = { 0 }, read;
        char text[FILE_ID_TEXT_MAX];

        (void)state;
        memset(&id, 0xff, offsetof(FileId, handle_size));
        id.handle_size = FILE_HANDLE_MAX;
        memset(id.handle, 0xab, sizeof(id.handle));
        assert_int_equal(file_id_parse(file_id_print(&id, text), &read), 0);
        assert_memory_equal(&id, &read, sizeof(id));
        assert_true(strlen(text) + 1 < sizeof(text));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(file_id_parse(bad[i], &read), -EINVAL);
}

/* The handle is larger than the room for it. */
static void test_too_long(void **state) {
        char text[1024] = "1:2:00112233445566778899aabbccddeeff:4:5:6:7:8:";
        FileId id;

        (void)state;
        memset(text + strlen(text), 'a', 2 * FILE_HANDLE_MAX + 2);
        assert_int_equal(file_id_parse(text, &id), -EINVAL);
}

static void test_the_same_file(void **state) {
        char text[FILE_ID_TEXT_MAX];
        FileId before, now;

        (void)state;
        assert_int_equal(mkdir("a", 0700), 0);
        before = get("a");
        assert_int_equal(file_id_parse(file_id_print(&before, text), &before), 0);
        assert_int_equal(rename("a", "b"), 0);
        assert_int_equal(mkdir("b/new", 0700), 0);
        assert_int_equal(chmod("b", 0755), 0);
        now = get("b");
        assert_int_equal(file_id_compare(&before, &now), FILE_ID_SAME);
        assert_int_equal(rmdir("b/new"), 0);
        assert_int_equal(rmdir("b"), 0);
}

static void test_an_inode_number_again(void **state) {
        FileId before, now;

        (void)state;
        assert_int_equal(mkdir("a", 0700), 0);
        before = get("a");
        assert_int_equal(rmdir("a"), 0);
        for (int i = 0; i < TRIES; i++) {
                assert_int_equal(mkdir("a", 0700), 0);
                now = get("a");
                assert_int_equal(rmdir("a"), 0);
                assert_int_equal(file_id_compare(&before, &now), FILE_ID_OTHER);
        }
}

static void test_other_files(void **state) {
        FileId directory, file, proc;

        (void)state;
        assert_int_equal(mkdir("a", 0700), 0);
        write_file("f");
        directory = get("a");
        file = get("f");
        proc = get("/proc");
        assert_int_equal(file_id_compare(&directory, &file), FILE_ID_TYPE);
        assert_int_equal(file_id_compare(&directory, &proc), FILE_ID_SYSTEM);
        assert_int_equal(rmdir("a"), 0);
        assert_int_equal(unlink("f"), 0);
}

/* The root directories of two file systems may have equal handles. */
static void test_other_file_systems(void **state) {
        FileId one = { .mode = S_IFDIR, .system_type = 1, .system = 2, .inode = 2 }, two = one;

        (void)state;
        one.handle_size = two.handle_size = 8;
        assert_int_equal(file_id_compare(&one, &two), FILE_ID_SAME);
        two.system = 3;
        assert_int_equal(file_id_compare(&one, &two), FILE_ID_SYSTEM);
        /* A UUID lasts. f_fsid of XFS is a device number, which does not. */
        one.uuid[0] = two.uuid[0] = 7;
        assert_int_equal(file_id_compare(&one, &two), FILE_ID_SAME);
        two.system = 2;
        two.uuid[1] = 7;
        assert_int_equal(file_id_compare(&one, &two), FILE_ID_SYSTEM);
}

static void test_another_tmpfs(void **state) {
        FileId one = { .mode = S_IFDIR, .system_type = 0x01021994, .system = 2, .uid = 7 };
        FileId two = one;

        (void)state;
        assert_false(file_id_is_anew(&one, &two));
        two.system = 3;
        assert_true(file_id_is_anew(&one, &two));
        two.uid = 8;
        assert_false(file_id_is_anew(&one, &two));
        two = one;
        two.system = 3;
        one.system_type = two.system_type = 0xef53;
        assert_false(file_id_is_anew(&one, &two));
}

/* Only the parts that both know are compared. */
static void test_without_a_handle(void **state) {
        FileId one = { .mode = S_IFDIR, .inode = 2, .born = 5 }, two = one;

        (void)state;
        two.handle_size = 8;
        assert_int_equal(file_id_compare(&one, &two), FILE_ID_SAME);
        two.born = 6;
        assert_int_equal(file_id_compare(&one, &two), FILE_ID_OTHER);
        two.born = 0;
        assert_int_equal(file_id_compare(&one, &two), FILE_ID_SAME);
        two.inode = 3;
        assert_int_equal(file_id_compare(&one, &two), FILE_ID_OTHER);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_as_text),       cmocka_unit_test(test_too_long),
                cmocka_unit_test(test_the_same_file), cmocka_unit_test(test_an_inode_number_again),
                cmocka_unit_test(test_other_files),   cmocka_unit_test(test_other_file_systems),
                cmocka_unit_test(test_another_tmpfs), cmocka_unit_test(test_without_a_handle),
        };

        return cmocka_run_group_tests(tests, make_place, remove_place);
}
