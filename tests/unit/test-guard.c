/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "directory-fixture.h"
#include "base/util.h"
#include "guards/guard.h"

static void make_file(const char *path) {
        int fd = open(path, O_WRONLY | O_CREAT, 0644);

        assert_true(fd >= 0);
        fd_close(fd);
}

/* pinned: the file that existed when the sandbox started, or NULL. */
static size_t sweep(const char *path, const struct stat *pinned, char moved_to[128]) {
        PlanGuard guard = { .path = (char *)(uintptr_t)path,
                            .pinned = pinned != NULL,
                            .device = pinned ? pinned->st_dev : 0,
                            .inode = pinned ? pinned->st_ino : 0 };
        const LaunchPlan plan = { .guards = &guard, .guards_count = 1 };
        _cleanup_(strlist_clear) StrList moved = { 0 };
        _cleanup_close_ int fd = open(".", O_PATH | O_DIRECTORY);
        Error error;

        if (guard_sweep(&plan, fd, &moved, NULL, &error) < 0)
                fail_msg("%s", error.text);
        moved_to[0] = '\0';
        if (moved.count)
                (void)snprintf(moved_to, 128, "%s", moved.items[0]);
        return moved.count;
}

static void test_new_files_are_set_aside(void **state) {
        char moved[128];

        (void)state;
        assert_int_equal(mkdir(".git", 0755), 0);
        make_file(".git/config");
        assert_int_equal(sweep(".git/config", NULL, moved), 1);
        assert_string_equal(moved, ".git/config.holt-untrusted");
        assert_int_equal(access(".git/config", F_OK), -1);
        assert_int_equal(access(".git/config.holt-untrusted", F_OK), 0);
        /* The second time, the name without a number is taken. */
        make_file(".git/config");
        assert_int_equal(sweep(".git/config", NULL, moved), 1);
        assert_string_equal(moved, ".git/config.holt-untrusted.2");
}

static void test_guarded_and_missing_paths_are_left_alone(void **state) {
        char moved[128];
        struct stat st;

        (void)state;
        assert_int_equal(sweep(".git/hooks", NULL, moved), 0);
        assert_int_equal(mkdir(".git", 0755), 0);
        assert_int_equal(mkdir(".git/hooks", 0755), 0);
        assert_int_equal(stat(".git/hooks", &st), 0);
        assert_int_equal(sweep(".git/hooks", &st, moved), 0);
        assert_int_equal(access(".git/hooks", F_OK), 0);
        /* Another file with the same name does not count. */
        assert_int_equal(rename(".git/hooks", ".git/old"), 0);
        assert_int_equal(mkdir(".git/hooks", 0755), 0);
        assert_int_equal(sweep(".git/hooks", &st, moved), 1);
        assert_string_equal(moved, ".git/hooks.holt-untrusted");
}

/* The link itself is set aside, and its target stays unchanged. */
static void test_no_link_is_followed(void **state) {
        char moved[128];

        (void)state;
        assert_int_equal(mkdir("elsewhere", 0755), 0);
        make_file("elsewhere/config");
        assert_int_equal(symlink("elsewhere", ".git"), 0);
        assert_int_equal(sweep(".git/config", NULL, moved), 1);
        assert_string_equal(moved, ".git.holt-untrusted");
        assert_int_equal(access("elsewhere/config", F_OK), 0);
        assert_int_equal(access(".git/config", F_OK), -1);
}

static void test_a_name_may_be_too_long_for_more(void **state) {
        char name[251], moved[128];

        (void)state;
        memset(name, 'n', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        make_file(name);
        assert_int_equal(sweep(name, NULL, moved), 1);
        assert_int_equal(strncmp(moved, ".holt-untrusted.", 16), 0);
        assert_int_equal(access(moved, F_OK), 0);
}

/* No file in /proc can be renamed. */
static void test_all_that_stays_is_named(void **state) {
        char first[] = "status", second[] = "no-such";
        PlanGuard guards[10] = { { .path = first }, { .path = second } };
        const LaunchPlan plan = { .guards = guards, .guards_count = ELEMENTSOF(guards) };
        _cleanup_(strlist_clear) StrList moved = { 0 };
        _cleanup_close_ int fd = open("/proc/self", O_PATH | O_DIRECTORY);
        Error error;

        (void)state;
        for (size_t i = 2; i < ELEMENTSOF(guards); i++)
                guards[i].path = (char *)(uintptr_t)(i == 2 ? "maps" : "stat");
        assert_true(guard_sweep(&plan, fd, &moved, NULL, &error) < 0);
        assert_int_equal(moved.count, 0);
        assert_non_null(strstr(error.text, "cannot set aside status, maps, stat, "));
        assert_non_null(strstr(error.text, "stat and 1 more, which"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_new_files_are_set_aside, enter_directory,
                                                leave_directory),
                cmocka_unit_test_setup_teardown(test_guarded_and_missing_paths_are_left_alone,
                                                enter_directory, leave_directory),
                cmocka_unit_test_setup_teardown(test_no_link_is_followed, enter_directory,
                                                leave_directory),
                cmocka_unit_test_setup_teardown(test_a_name_may_be_too_long_for_more,
                                                enter_directory, leave_directory),
                cmocka_unit_test(test_all_that_stays_is_named),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
