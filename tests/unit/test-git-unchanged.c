/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "directory-fixture.h"
#include "base/util.h"
#include "git/repository.h"
#include "git/unchanged.h"

/* 1,000 entries, which take more than REPOSITORY_INDEX_LARGE bytes. */
#define MAKE_INDEX                                                                                 \
        "git init -q . && for i in $(seq 1000); do printf '100644 "                                \
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\\tmany/%s\\n' $i; done | "                       \
        "git update-index --index-info"
#define ADD_LINK                                                                                   \
        "git update-index --add --cacheinfo 160000,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,sub"

static int enter(void **state) {
        char path[] = "/tmp/holt-unchanged-XXXXXX";

        *state = mkdtemp(path) ? realpath(path, NULL) : NULL;
        return *state && chdir(*state) == 0 ? system(MAKE_INDEX) : -1;
}

static int leave(void **state) {
        int r = remove_directory(*state);

        free(*state);
        return r;
}

/* Looks at the repository as before a command if ret_plain is set, else as after it. */
static size_t count_links(const char *top, const LaunchPlan *plan, StrList *ret_plain) {
        _cleanup_(repository_links_clear)
                RepositoryLinks found = { .plan = plan, .ret_plain = ret_plain };
        _cleanup_close_ int fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
        const RepositoryTree tree = { fd, top };

        assert_int_equal(repository_links(&tree, ".git", &found), 0);
        return found.links.count;
}

static void stat_index(struct stat *ret) {
        assert_int_equal(stat(".git/index", ret), 0);
}

static void test_a_young_index_is_not_noted(void **state) {
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };

        assert_int_equal(count_links(*state, &plan, &plan.plain_indexes), 0);
        assert_int_equal(plan.plain_indexes.count, 0);
}

static void test_an_index_with_a_link_is_not_noted(void **state) {
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };

        assert_int_equal(system(ADD_LINK), 0);
        (void)sleep(UNCHANGED_AGE + 1);
        assert_int_equal(count_links(*state, &plan, &plan.plain_indexes), 1);
        assert_int_equal(plan.plain_indexes.count, 0);
}

/* A noted index is not read again: a link in it, which this test notes wrongly, is not found. */
static void test_a_noted_index_is_not_read(void **state) {
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };
        struct stat st;

        assert_int_equal(system(ADD_LINK), 0);
        stat_index(&st);
        assert_int_equal(count_links(*state, &plan, NULL), 1);
        assert_int_equal(strlist_take(&plan.plain_indexes, unchanged_identity(&st, GIT_SHA1)), 0);
        assert_int_equal(count_links(*state, &plan, NULL), 0);
        assert_int_equal(chmod(".git/index", 0600), 0); /* Sets the change time. */
        assert_int_equal(count_links(*state, &plan, NULL), 1);
}

/* The result depends on the file system, which unchanged_is_certain() asks. */
static void test_an_old_index_is_noted(void **state) {
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };
        _cleanup_close_ int fd = open(".git/index", O_RDONLY | O_CLOEXEC), writer = FD_NONE;
        struct stat st;

        (void)sleep(UNCHANGED_AGE + 1);
        stat_index(&st);
        assert_int_equal(count_links(*state, &plan, &plan.plain_indexes), 0);
        assert_int_equal(plan.plain_indexes.count, unchanged_is_certain(fd, &st));
        writer = open(".git/index", O_RDWR | O_CLOEXEC);
        assert_true(writer >= 0);
        assert_false(unchanged_is_certain(fd, &st));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_young_index_is_not_noted, enter, leave),
                cmocka_unit_test_setup_teardown(test_an_index_with_a_link_is_not_noted, enter,
                                                leave),
                cmocka_unit_test_setup_teardown(test_a_noted_index_is_not_read, enter, leave),
                cmocka_unit_test_setup_teardown(test_an_old_index_is_noted, enter, leave),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
