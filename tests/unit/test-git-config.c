/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "git/config.h"

static int read_text(const char *text, GitConfig *ret) {
        return git_config_read(text, strlen(text), ret);
}

static const struct {
        const char *text, *hooks;
} one_way[] = {
        { "[core]\n\thooksPath = .husky\n", ".husky" },
        { "[core] hooksPath = .husky", ".husky" },
        { "[CORE]HOOKSPATH=.husky\r\n", ".husky" },
        { "\xef\xbb\xbf[core]hookspath=a", "a" },
        { "; x\n# [y\n[core] ; z\nhooksPath = a ; b\n", "a" },
        { "[core]\nhooksPath = \"a ; b\" \n", "a ; b" },
        { "[core]\nhooksPath =  a  b\t\n", "a  b" },
        { "[core]\nhooksPath = a\\\nb\n", "ab" },
        { "[core]\nhooksPath = a\\\r\nb\n", "ab" },
        { "[core]\nhooksPath = \\\"a\\\\\\t\n", "\"a\\\t" },
        { "[core]\nhooksPath = a\"b c\"d\n", "ab cd" },
        { "[core]\nhooksPath =\n", "" },
        { "[core]\nbare\nhooksPath = a\n", "a" },
        { "[core]\nbare = false ; [x]\nhooksPath = a\n", "a" },
        { "[a \"b\\\"]c\"]\nd = e\n[core] hooksPath = a\n", "a" },
        { "[core]\nx = \"\n", NULL },
};

static void test_hooks_are_found(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(one_way); i++) {
                GitConfig config = { 0 };

                assert_int_equal(read_text(one_way[i].text, &config),
                                 one_way[i].hooks ? 0 : -EBADMSG);
                assert_int_equal(config.hooks.count, one_way[i].hooks != NULL);
                if (one_way[i].hooks)
                        assert_string_equal(config.hooks.items[0], one_way[i].hooks);
                git_config_clear(&config);
        }
}

static void test_includes_are_found_on_any_condition(void **state) {
        GitConfig config = { 0 };

        (void)state;
        assert_int_equal(read_text("[include]\npath = a\npath = b\n[includeIf \"gitdir:X/.path\"] "
                                   "path = c\n[IncludeIf.onbranch] Path = d\n",
                                   &config),
                         0);
        assert_int_equal(config.includes.count, 4);
        assert_string_equal(config.includes.items[1], "b");
        assert_string_equal(config.includes.items[2], "c");
        assert_string_equal(config.includes.items[3], "d");
        git_config_clear(&config);
}

static void test_work_trees_are_found(void **state) {
        GitConfig config = { 0 };

        (void)state;
        assert_int_equal(
                read_text("[core]\nworktree = ../../../sub\nWorkTree = \"b c\"\n", &config), 0);
        assert_int_equal(config.worktrees.count, 2);
        assert_string_equal(config.worktrees.items[0], "../../../sub");
        assert_string_equal(config.worktrees.items[1], "b c");
        git_config_clear(&config);
}

static void test_others_are_not(void **state) {
        static const char *const others[] = {
                "",
                "[core]\nhooksPathX = a\n",
                "[core \"x\"]\nhooksPath = a\n",
                "[include \"x\"]\npath = a\n",
                "[includeIf \"x\"]\npaths = a\n",
                "[core]\nhooksPath\n",
                "[x]\ny = a\\\n[core]hooksPath = a\n",
                "[x]\ny = \"[core]\"\nhooksPath = a\n",
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                GitConfig config = { 0 };

                assert_int_equal(read_text(others[i], &config), 0);
                assert_int_equal(config.hooks.count + config.includes.count, 0);
                assert_int_equal(config.worktrees.count, 0);
                git_config_clear(&config);
        }
}

static void test_invalid_configs_are_refused(void **state) {
        static const char *const bad[] = {
                "[",          "[]\n",         "[core\n",         "[core \"x\n\"]", "[core x]\n",
                "[a \"b\" ]", "=\n",          "[a]\nb c\n",      "[a]\nb = \\x\n", "[a]\nb = \"c\n",
                "[a_b]\n",    "[a]\n1 = 2\n", "[a \"b\\\n\"]\n", "[a]\nb = \"\\",  "\xff\n",
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                GitConfig config = { 0 };

                assert_int_equal(read_text(bad[i], &config), -EBADMSG);
                git_config_clear(&config);
        }
}

static void test_a_zero_is_refused(void **state) {
        GitConfig config = { 0 };

        (void)state;
        assert_int_equal(git_config_read("[a]\0[b]", 7, &config), -EBADMSG);
        git_config_clear(&config);
}

static void test_a_long_value_is_in_nobodys_way(void **state) {
        _cleanup_free_ char *text = str_format("[alias]\na = %05000d\n[core]hooksPath = b\n", 0);
        _cleanup_free_ char *path = str_format("[core]hooksPath = %05000d", 0);
        GitConfig config = { 0 };

        (void)state;
        assert_int_equal(read_text(text, &config), 0);
        assert_string_equal(config.hooks.items[0], "b");
        assert_int_equal(read_text(path, &config), -E2BIG);
        git_config_clear(&config);
}

static void test_bounds_hold(void **state) {
        _cleanup_free_ char *text = strdup("[include]\n");
        GitConfig config = { 0 };

        (void)state;
        for (int i = 0; text && i <= GIT_CONFIG_PATHS_MAX; i++) {
                char *more = str_format("%spath = a\n", text);

                free(text);
                text = more;
        }
        assert_non_null(text);
        assert_int_equal(read_text(text, &config), -E2BIG);
        assert_int_equal(config.includes.count, GIT_CONFIG_PATHS_MAX);
        git_config_clear(&config);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_hooks_are_found),
                cmocka_unit_test(test_includes_are_found_on_any_condition),
                cmocka_unit_test(test_work_trees_are_found),
                cmocka_unit_test(test_others_are_not),
                cmocka_unit_test(test_invalid_configs_are_refused),
                cmocka_unit_test(test_a_zero_is_refused),
                cmocka_unit_test(test_a_long_value_is_in_nobodys_way),
                cmocka_unit_test(test_bounds_hold),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
