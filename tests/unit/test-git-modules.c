/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "directory-fixture.h"
#include "base/util.h"
#include "git/modules.h"

typedef struct Place {
        char top[PATH_MAX], git[PATH_MAX + 8];
} Place;

/* Creates a work tree with a .git, and enters it. */
static int enter(void **state) {
        Place *place = calloc(1, sizeof(*place));
        char path[] = "/tmp/holt-modules-XXXXXX";

        *state = place;
        if (!place || !mkdtemp(path) || !realpath(path, place->top))
                return -1;
        (void)snprintf(place->git, sizeof(place->git), "%s/.git", place->top);
        return mkdir(place->git, 0755) == 0 && chdir(place->git) == 0 ? 0 : -1;
}

static int leave(void **state) {
        const Place *place = *state;
        int r = remove_directory(place->top);

        free(*state);
        return r;
}

/* Creates a git directory at path, with a value for core.worktree in its config. */
static void make_module(const char *path, const char *worktree) {
        char command[2 * PATH_MAX];

        (void)snprintf(command, sizeof(command),
                       "mkdir -p '%s' && printf '[core]\\nworktree = %s\\n' >'%s/config'", path,
                       worktree, path);
        assert_int_equal(system(command), 0);
}

static void assert_found(const Place *place, const char *const *expected, size_t count) {
        _cleanup_(strlist_clear) StrList found = { 0 };
        _cleanup_close_ int fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

        assert_int_equal(git_modules_find(fd, place->git, place->top, &found), 0);
        assert_int_equal(found.count, count);
        for (size_t i = 0; i < count; i++)
                assert_true(strlist_has(&found, expected[i]));
}

static void test_none_are_found_where_none_are(void **state) {
        assert_found(*state, NULL, 0);
        assert_int_equal(mkdir("modules", 0755), 0);
        assert_found(*state, NULL, 0);
}

static void test_names_have_parts_and_submodules_submodules(void **state) {
        static const char *const expected[] = { "sub", "lib/a", "lib/a/inner", "b", "c" };

        make_module("modules/sub", "../../../sub");
        make_module("modules/lib/a", "../../../../lib/a");
        make_module("modules/lib/a/modules/inner", "../../../../../../lib/a/inner");
        make_module("modules/config", "../../../b");
        make_module("modules/modules", "../../../c");
        assert_found(*state, expected, ELEMENTSOF(expected));
}

static void test_modules_outside_of_the_work_tree_are_left_out(void **state) {
        const Place *place = *state;
        char beside[PATH_MAX + 8];

        (void)snprintf(beside, sizeof(beside), "%s-x/sub", place->top);
        make_module("modules/above", "../../../..");
        make_module("modules/top", "../../..");
        make_module("modules/root", "/");
        make_module("modules/beside", beside);
        assert_found(place, NULL, 0);
}

static void test_an_absolute_one_is_found_once(void **state) {
        static const char *const expected[] = { "sub" };
        const Place *place = *state;
        char path[PATH_MAX + 8];

        (void)snprintf(path, sizeof(path), "%s/sub", place->top);
        make_module("modules/sub", path);
        make_module("modules/again", "../../../x/../sub");
        assert_found(place, expected, 1);
}

/* The caller's own files there may be of any kind. */
static void test_odd_files_do_not_end_the_search(void **state) {
        static const char *const expected[] = { "sub" };

        make_module("modules/sub", "../../../sub");
        make_module("modules/bad", "\\\\q");
        assert_int_equal(symlink(".", "modules/loop"), 0);
        assert_int_equal(mkfifo("modules/fifo", 0600), 0);
        assert_int_equal(mkdir("modules/odd", 0755), 0);
        assert_int_equal(mkfifo("modules/odd/config", 0600), 0);
        assert_int_equal(
                system("p=modules/deep; for i in $(seq 100); do p=$p/d; done; mkdir -p $p"), 0);
        assert_found(*state, expected, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_none_are_found_where_none_are, enter, leave),
                cmocka_unit_test_setup_teardown(test_names_have_parts_and_submodules_submodules,
                                                enter, leave),
                cmocka_unit_test_setup_teardown(test_modules_outside_of_the_work_tree_are_left_out,
                                                enter, leave),
                cmocka_unit_test_setup_teardown(test_an_absolute_one_is_found_once, enter, leave),
                cmocka_unit_test_setup_teardown(test_odd_files_do_not_end_the_search, enter, leave),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
