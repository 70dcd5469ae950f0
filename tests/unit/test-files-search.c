/* SPDX-License-Identifier: Apache-2.0 */
#include "base/glob.h"
#include "files-fixture.h"
#include "files/grep-pattern.h"
#include "files/mime.h"
#include "files/walk.h"

/* --- results of calls as one text --- */

typedef struct Found {
        char text[4096];
        char last[PATH_MAX];
        size_t count;
} Found;

static int found_name(void *data, const char *name, const FileStat *stat) {
        Found *found = data;

        assert_true(stat->type < FILE_TYPE_MAX);
        if (strlen(found->text) + strlen(name) + 2 < sizeof(found->text)) {
                (void)strcat(found->text, name);
                (void)strcat(found->text, " ");
        }
        (void)strcpy(found->last, name);
        found->count++;
        return 0;
}

static int found_line(void *data, const char *name, uint64_t line, const char *text) {
        Found *found = data;
        size_t used = strlen(found->text);

        (void)snprintf(found->text + used, sizeof(found->text) - used, "%s:%d:%.40s ", name,
                       (int)line, text);
        found->count++;
        return 0;
}

static void make_tree(void) {
        static const char *const dirs[] = { "a", "a/b", "a/b/c", ".hidden", "src", "src/lib" };
        static const char *const files[] = {
                "a/one.c",     "a/b/two.c",  "a/b/c/three.h",  "a-b",
                ".hidden/x.c", "src/.dot.c", "src/lib/four.c", "top.c"
        };
        char path[256];

        for (size_t i = 0; i < ELEMENTSOF(dirs); i++) {
                (void)snprintf(path, sizeof(path), "root/work/%s", dirs[i]);
                assert_int_equal(mkdir(path, 0755), 0);
        }
        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                (void)snprintf(path, sizeof(path), "root/work/%s", files[i]);
                make_file(path, files[i]);
        }
        assert_int_equal(symlink("/work", "root/work/src/loop"), 0);
}

/* --- list --- */

static void test_list(void **state) {
        Fixture *f = *state;
        Found found = { 0 };
        bool more;
        FilesMissed missed;

        make_tree();
        assert_works(f, files_list(f->files, ".", false, "", 0, found_name, &found, &more, &missed,
                                   &f->error));
        assert_string_equal(found.text, ".hidden a a-b src top.c ");
        assert_false(more);
        found = (Found){ 0 };
        assert_works(f, files_list(f->files, "a", true, "", 0, found_name, &found, &more, &missed,
                                   &f->error));
        assert_string_equal(found.text, "b b/c b/c/three.h b/two.c one.c ");
        assert_fails(f,
                     files_list(f->files, "top.c", true, "", 0, found_name, &found, &more, &missed,
                                &f->error),
                     ERROR_USAGE, ENOTDIR);
        assert_fails(f,
                     files_list(f->files, "x", true, "", 0, found_name, &found, &more, &missed,
                                &f->error),
                     ERROR_MISSING, ENOENT);
}

static void test_list_below(void **state) {
        static const char *const cases[][2] = {
                { "", ".hidden/x.c a-b a/b/c/three.h a/b/two.c a/one.c src/.dot.c src/lib/four.c "
                      "top.c " },
                { "a", "a-b a/b/c/three.h a/b/two.c a/one.c " },
                { "a/", "a/b/c/three.h a/b/two.c a/one.c " },
                { "a/b/t", "a/b/two.c " },
                { "src/lib/four.c", "src/lib/four.c " },
                { "src/lib/four.c/", "" },
                { "x", "" },
        };
        Fixture *f = *state;

        make_tree();
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                for (uint64_t limit = 1; limit < 10; limit++) {
                        Found found = { 0 };
                        bool more = true;
                        FilesMissed missed;

                        while (more)
                                assert_works(f,
                                             files_list_below(f->files, ".", cases[i][0],
                                                              found.last, limit, found_name, &found,
                                                              &more, &missed, &f->error));
                        assert_string_equal(found.text, cases[i][1]);
                }
}

/* Pages of any size add up to the whole, and new names do not shift the others. */
static void test_list_in_pages(void **state) {
        Fixture *f = *state;

        make_tree();
        for (uint64_t limit = 1; limit < 20; limit++) {
                Found found = { 0 };
                bool more = true;
                FilesMissed missed;

                while (more)
                        assert_works(f, files_list(f->files, ".", true, found.last, limit,
                                                   found_name, &found, &more, &missed, &f->error));
                assert_string_equal(
                        found.text,
                        ".hidden .hidden/x.c a a-b a/b a/b/c a/b/c/three.h a/b/two.c "
                        "a/one.c src src/.dot.c src/lib src/lib/four.c src/loop top.c ");
        }
}

static void test_list_while_entries_come(void **state) {
        Fixture *f = *state;
        Found found = { 0 };
        bool more = true;
        FilesMissed missed;
        char path[64];

        for (int i = 0; i < 3000; i++) {
                (void)snprintf(path, sizeof(path), "root/work/old%04d", i);
                make_file(path, "");
        }
        for (int i = 0; more; i++) {
                size_t before = found.count;

                assert_works(f, files_list(f->files, ".", false, found.last, 100, found_name,
                                           &found, &more, &missed, &f->error));
                assert_true(found.count - before <= 100);
                (void)snprintf(path, sizeof(path), "root/work/new%04d", i);
                make_file(path, "");
                (void)snprintf(path, sizeof(path), "root/work/old%04d-", i * 100 + 50);
                make_file(path, "");
        }
        assert_true(found.count >= 3000);
        assert_string_equal(found.last, "old2999");
}

static void test_a_page_is_the_smallest(void **state) {
        NamePage page = { .after = "0500", .limit = 10 };
        char name[16];

        (void)state;
        for (unsigned i = 0; i < 10000; i++) {
                (void)snprintf(name, sizeof(name), "%04u", i * 7919 % 10000);
                assert_int_equal(name_page_offer(&page, name), 0);
        }
        name_page_sort(&page);
        assert_int_equal(page.count, 10);
        assert_string_equal(page.names[0], "0501");
        assert_string_equal(page.names[9], "0510");
        assert_true(page.more);
        name_page_clear(&page);
}

/* With names of 4000 bytes, a page ends at 8 MiB, and the next page continues there. */
static void test_a_page_is_bounded(void **state) {
        char name[4001], last[4001] = "";
        unsigned total = 0;
        bool more = true;

        (void)state;
        while (more) {
                NamePage page = { .after = last, .limit = 10000 };

                for (unsigned i = 0; i < 6000; i++) {
                        (void)snprintf(name, sizeof(name), "%05u%03990d", i * 7919 % 6000, 0);
                        assert_int_equal(name_page_offer(&page, name), 0);
                }
                assert_true(page.bytes <= 8 << 20);
                name_page_sort(&page);
                total += (unsigned)page.count;
                (void)strcpy(last, page.names[page.count - 1]);
                more = page.more;
                name_page_clear(&page);
        }
        assert_int_equal(total, 6000);
}

static void test_names_of_any_bytes(void **state) {
        Fixture *f = *state;
        Found found = { 0 };
        bool more;
        FilesMissed missed;

        make_file("root/work/\xff\xfe\n\x1b", "");
        assert_works(f, files_list(f->files, ".", false, "", 0, found_name, &found, &more, &missed,
                                   &f->error));
        assert_string_equal(found.text, "\xff\xfe\n\x1b ");
        found = (Found){ 0 };
        assert_works(f,
                     files_glob(f->files, ".", "??\n?", 0, found_name, &found, &more, &f->error));
        assert_int_equal(found.count, 1);
}

/* --- glob --- */

static bool glob_finds(const char *pattern, unsigned flags, const char *path) {
        Glob *glob = NULL;
        char copy[64], *rest = copy;
        uint64_t state;
        bool found;

        assert_int_equal(glob_new(pattern, flags, &glob), 0);
        (void)snprintf(copy, sizeof(copy), "%s", path);
        state = glob_start(glob);
        for (char *part; (part = strsep(&rest, "/")) != NULL;)
                state = glob_step(glob, state, part);
        found = glob_matches(glob, state, false);
        glob_free(glob);
        return found;
}

static void assert_expands(const char *pattern, const char *expected) {
        _cleanup_(strlist_clear) StrList all = { 0 };
        char text[256] = "";

        assert_int_equal(glob_expand(pattern, 8, &all), 0);
        for (size_t i = 0; i < all.count; i++)
                (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s ",
                               all.items[i]);
        assert_string_equal(text, expected);
        assert_int_equal(glob_is_pattern(pattern), all.count > 1);
}

static void test_glob_braces(void **state) {
        _cleanup_(strlist_clear) StrList all = { 0 };

        (void)state;
        assert_expands("plain", "plain ");
        assert_expands("x.{pem,key}", "x.pem x.key ");
        assert_expands("{a,b}{c,d}", "ac ad bc bd ");
        assert_expands("{a,b{c,d/e}}x", "ax bcx bd/ex ");
        assert_expands("{,a}b{}", "b{} ab{} ");
        assert_expands("{{name}}.{a,b}", "{{name}}.a {{name}}.b ");
        assert_expands("{a", "{a ");
        assert_expands("a,b}", "a,b} ");
        assert_expands("{a{b,c}", "{ab {ac ");
        assert_expands("{a\\,b}", "{a\\,b} ");
        assert_expands("\\{a,b}", "\\{a,b} ");
        assert_int_equal(glob_expand("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", 8, &all), -E2BIG);
}

static void test_glob_with_dots(void **state) {
        (void)state;
        assert_false(glob_finds("**/.env", 0, "a/.b/.env"));
        assert_true(glob_finds("**/.env", GLOB_DOTS, "a/.b/.env"));
        assert_false(glob_finds("*.pem", GLOB_ANYWHERE, ".b/.k.pem"));
        assert_true(glob_finds("*.pem", GLOB_ANYWHERE | GLOB_DOTS, ".b/.k.pem"));
        assert_false(glob_finds("*.pem", GLOB_DOTS, "b/k.pem"));
}

static void test_glob_names(void **state) {
        static const struct {
                const char *pattern, *name;
                bool matches;
        } cases[] = {
                { "a", "a", true },
                { "a", "b", false },
                { "*", "abc", true },
                { "*", ".abc", false },
                { ".*", ".abc", true },
                { "?abc", ".abc", false },
                { "[.]abc", ".abc", false },
                { "\\.a*", ".abc", true },
                { "*.c", "x.c", true },
                { "*.c", "x.c.h", false },
                { "a*b*c", "abbc", true },
                { "a*b*c", "acb", false },
                { "?", "\xc3\xa4", true },
                { "??", "\xc3\xa4", false },
                { "?", "\xff", true },
                { "[a-c]x", "bx", true },
                { "[a-c]x", "dx", false },
                { "[!a-c]x", "dx", true },
                { "[^a]", "a", false },
                { "[]]", "]", true },
                { "[a-]", "-", true },
                { "[", "[", true },
                { "[a", "[a", true },
                { "a\\*", "a*", true },
                { "a\\*", "ab", false },
                { "a\\", "a\\", true },
                { "*?", "", false },
                { "**", "ab", true },
                { "{a,b}", "a", false },
                { "{a,b}", "{a,b}", true },
                { "[\xc3\xa0-\xc3\xbf]", "\xc3\xa4", true },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                if (glob_name(cases[i].pattern, cases[i].name, false) != cases[i].matches)
                        fail_msg("\"%s\" and \"%s\"", cases[i].pattern, cases[i].name);
}

static void test_glob_does_not_blow_up(void **state) {
        char pattern[201], name[256];

        (void)state;
        for (size_t i = 0; i < 200; i += 2)
                memcpy(pattern + i, "*a", 2);
        (void)strcpy(pattern + 198, "*b");
        memset(name, 'a', 255);
        name[255] = '\0';
        assert_false(glob_name(pattern, name, false));
}

static void test_glob_paths(void **state) {
        Fixture *f = *state;
        static const struct {
                const char *pattern, *found;
        } cases[] = {
                { "*.c", "top.c " },
                { "**/*.c", "a/b/two.c a/one.c src/lib/four.c top.c " },
                { "a/**", "a/b a/b/c a/b/c/three.h a/b/two.c a/one.c " },
                { "**/c", "a/b/c " },
                { "a/**/three.h", "a/b/c/three.h " },
                { "a/**/b/**/*.?", "a/b/c/three.h a/b/two.c " },
                { ".hidden/*", ".hidden/x.c " },
                { "**/.*", ".hidden src/.dot.c " },
                { "src/loop/*", "" },
                { "./a/./one.c", "a/one.c " },
                { "a/*/", "a/b " },
                { "a/**/", "a/b a/b/c " },
                { "top.c/", "" },
                { "nothing", "" },
        };
        bool more;

        make_tree();
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Found found = { 0 };

                assert_works(f, files_glob(f->files, "/work", cases[i].pattern, 0, found_name,
                                           &found, &more, &f->error));
                assert_string_equal(found.text, cases[i].found);
                assert_false(more);
        }
}

static void test_glob_limits(void **state) {
        Fixture *f = *state;
        Found found = { 0 };
        char pattern[1200] = { 0 };
        bool more;

        make_tree();
        assert_works(f,
                     files_glob(f->files, ".", "**/*.c", 2, found_name, &found, &more, &f->error));
        assert_string_equal(found.text, "a/b/two.c a/one.c ");
        assert_true(more);
        memset(pattern, 'a', sizeof(pattern) - 1);
        assert_fails(f, files_glob(f->files, ".", pattern, 0, found_name, &found, &more, &f->error),
                     ERROR_USAGE, ENAMETOOLONG);
        for (size_t i = 0; i < 200; i += 2)
                memcpy(pattern + i, "a/", 2);
        pattern[200] = '\0';
        assert_fails(f, files_glob(f->files, ".", pattern, 0, found_name, &found, &more, &f->error),
                     ERROR_USAGE, ENAMETOOLONG);
        assert_fails(f, files_glob(f->files, ".", "/a", 0, found_name, &found, &more, &f->error),
                     ERROR_USAGE, EINVAL);
        assert_fails(f,
                     files_glob(f->files, ".", "a/../b", 0, found_name, &found, &more, &f->error),
                     ERROR_USAGE, EINVAL);
}

/* --- grep --- */

static void test_grep(void **state) {
        Fixture *f = *state;
        static const struct {
                const char *path, *pattern, *glob;
                bool ignore_case;
                const char *found;
        } cases[] = {
                { ".", "^one", NULL, false, "a/one.c:1:one " },
                { ".", "two|three", NULL, false, "a/one.c:2:two a/one.c:3:three b.txt:2:two " },
                { ".", "TWO", NULL, true, "a/one.c:2:two b.txt:2:two " },
                { ".", "TWO", NULL, false, "" },
                { ".", "two", "*.txt", false, "b.txt:2:two " },
                { ".", "two", "*.c", false, "a/one.c:2:two " },
                { ".", "two", "a/*.c", false, "a/one.c:2:two " },
                { "a", "two", NULL, false, "one.c:2:two " },
                { "a/one.c", "two", NULL, false, "one.c:2:two " },
                { "link", "two", NULL, false, "link:2:two " },
                { ".", "last$", NULL, false, "b.txt:4:last " },
                { ".", "^$", NULL, false, "b.txt:3: " },
        };

        assert_int_equal(mkdir("root/work/a", 0755), 0);
        make_file("root/work/a/one.c", "one\ntwo\nthree\n");
        make_file("root/work/b.txt", "1\ntwo\n\nlast");
        assert_int_equal(symlink("b.txt", "root/work/link"), 0);
        assert_int_equal(mkfifo("root/work/fifo", 0644), 0);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Found found = { 0 };
                bool more;

                assert_works(f, files_grep(f->files, cases[i].path, cases[i].pattern,
                                           cases[i].ignore_case, cases[i].glob, 0, found_line,
                                           &found, &more, &f->error));
                assert_string_equal(found.text, cases[i].found);
                assert_false(more);
        }
}

static int check_cut(void *data, const char *name, uint64_t line, const char *text) {
        (void)name;
        assert_int_equal(strlen(text), FILES_GREP_LINE_MAX);
        *(uint64_t *)data = line;
        return 0;
}

static void test_grep_long_lines_and_binaries(void **state) {
        Fixture *f = *state;
        _cleanup_close_ int fd = open("root/work/long", O_RDWR | O_CREAT, 0644);
        char text[1000];
        Found found = { 0 };
        uint64_t line = 0;
        bool more;

        memset(text, 'x', sizeof(text));
        for (int i = 0; i < 300; i++)
                assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
        assert_int_equal(write(fd, "behind\nshort\n", 13), 13);
        assert_works(f, files_grep(f->files, ".", "^x", false, NULL, 0, check_cut, &line, &more,
                                   &f->error));
        assert_int_equal(line, 1);
        assert_works(f, files_grep(f->files, ".", "short|behind", false, NULL, 0, found_line,
                                   &found, &more, &f->error));
        assert_string_equal(found.text, "long:2:short ");
        assert_int_equal(pwrite(fd, "", 1, 8191), 1);
        found = (Found){ 0 };
        assert_works(f, files_grep(f->files, ".", "short", false, NULL, 0, found_line, &found,
                                   &more, &f->error));
        assert_string_equal(found.text, "");
}

static void test_grep_limits(void **state) {
        Fixture *f = *state;
        Found found = { 0 };
        bool more;

        make_file("root/work/a", "x\nx\nx\n");
        assert_works(f, files_grep(f->files, ".", "x", false, NULL, 2, found_line, &found, &more,
                                   &f->error));
        assert_int_equal(found.count, 2);
        assert_true(more);
        found = (Found){ 0 };
        assert_works(f, files_grep(f->files, ".", "x", false, NULL, 3, found_line, &found, &more,
                                   &f->error));
        assert_int_equal(found.count, 3);
        assert_false(more);
}

/* A hole after the first line makes a terabyte to read. */
static void test_grep_ends(void **state) {
        Fixture *f = *state;
        Found found = { 0 };
        char text[8193] = { 0 };
        bool more;

        memset(text, 'y', sizeof(text) - 1);
        make_file("root/work/a", text);
        make_file("root/work/b", "x\n");
        assert_int_equal(truncate("root/work/a", INT64_C(1) << 40), 0);
        assert_works(f, files_grep(f->files, ".", "x", false, NULL, 3, found_line, &found, &more,
                                   &f->error));
        assert_true(more);
}

static void test_grep_patterns_have_a_price(void **state) {
        static const struct {
                const char *pattern;
                int result;
        } cases[] = {
                { "a+", 0 },
                { "[0-9]{1,3}\\.[0-9]{1,3}", 0 },
                { "[a-f0-9]{64}", 0 },
                { "[[:alpha:]]{255}", 0 },
                { "^(foo|bar)+$", 0 },
                { "[^]{(+]*", 0 },
                { "[[.{.]a(]x", 0 },
                { "(a{255}){255}", -E2BIG },
                { "((a{99}){99}){99}", -E2BIG },
                { "a{40}{40}", -E2BIG },
                { "((((((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+", -E2BIG },
                { "((((((((((((((((((((((((((((((((((a))))))))))))))))))))))))))))))))))", -E2BIG },
                { "a{99999999999999999999}", -E2BIG },
                { "(a)\\1", -EINVAL },
                { "a(", -EINVAL },
                { "[a", -EINVAL },
                { "a\\", -EINVAL },
        };
        Error error;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                regex_t regex;
                int r = grep_pattern_compile(cases[i].pattern, false, &regex, &error);

                if (r != cases[i].result)
                        fail_msg("%s: %d", cases[i].pattern, r);
                if (r == 0)
                        regfree(&regex);
        }
}

static void test_mime(void **state) {
        (void)state;
        assert_string_equal(mime_type("report.PDF"), "application/pdf");
        assert_string_equal(mime_type("a/b.tar.gz"), "application/gzip");
        assert_string_equal(mime_type("README"), "application/octet-stream");
        assert_string_equal(mime_type("x."), "application/octet-stream");
        assert_string_equal(mime_type("x.csv"), "text/csv");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                files_test(test_list),
                files_test(test_list_below),
                files_test(test_list_in_pages),
                files_test(test_list_while_entries_come),
                cmocka_unit_test(test_a_page_is_the_smallest),
                cmocka_unit_test(test_a_page_is_bounded),
                files_test(test_names_of_any_bytes),
                cmocka_unit_test(test_glob_names),
                cmocka_unit_test(test_glob_braces),
                cmocka_unit_test(test_glob_with_dots),
                cmocka_unit_test(test_glob_does_not_blow_up),
                files_test(test_glob_paths),
                files_test(test_glob_limits),
                files_test(test_grep),
                files_test(test_grep_long_lines_and_binaries),
                files_test(test_grep_limits),
                files_test(test_grep_ends),
                cmocka_unit_test(test_grep_patterns_have_a_price),
                cmocka_unit_test(test_mime),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
