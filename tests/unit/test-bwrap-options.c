/* SPDX-License-Identifier: Apache-2.0 */
/* Tests runner/bwrap/: limits of bubblewrap's options, and options that need others. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sys.h"
#include "bwrap/options.h"

static char one[] = "A=1", two[] = "AB=2", policy[] = "HOLT_BWRAP_POLICY=x", program[] = "bwrap";
static char *const environment[] = { one, two, policy, NULL };

/* Parses words, which are separated by spaces. */
static int parse(const char *line, BwrapWords *words, Error *error) {
        static char text[1000];
        char *argv[64] = { program };
        int argc = 1;

        (void)snprintf(text, sizeof(text), "%s", line);
        for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
                argv[argc++] = word;
        return bwrap_parse(argc, argv, environment, words, error);
}

static void test_accepted(void **state) {
        static const char *const lines[] = {
                "true",
                "--perms 7777 --dir /x true",
                "--perms 0 --size 1 --tmpfs /x true",
                "--size 9223372036854775807 --perms 0 --tmpfs /x true",
                "--uid 4294967294 --gid 0 --unshare-user true",
                "--overlay-src / --overlay-src / --ro-overlay / true",
                "--unshare-all --share-net --hostname x true",
                "--help --nope",
        };
        BwrapWords words;
        Error error;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                if (parse(lines[i], &words, &error) < 0)
                        fail_msg("<%s>: %s", lines[i], error.text);
                bwrap_words_clear(&words);
        }
}

static void test_refused(void **state) {
        static const struct {
                const char *line, *why;
        } cases[] = {
                { "--nope", "Unknown option --nope" },
                { "--bind /", "--bind needs two values" },
                { "--overlay / /", "--overlay needs three values" },
                { "--perms 10000 --dir /x true", "octal" },
                { "--perms 8 --dir /x true", "octal" },
                { "--perms 7 --perms 7 --dir /x true", "twice" },
                { "--perms 7 true", "--perms must come before" },
                { "--perms 7 --bind / / true", "--perms must come before" },
                { "--size 1 --size 2 --tmpfs /x true", "twice" },
                { "--size 0 --tmpfs /x true", "above 0" },
                { "--size 9223372036854775808 --tmpfs /x true", "above 0" },
                { "--size 1 --dir /x true", "--size must come before" },
                { "--size -1 --tmpfs /x true", "above 0" },
                { "--uid 4294967295 --unshare-user true", "is no id" },
                { "--uid -1 --unshare-user true", "is no id" },
                { "--file 2147483648 /x true", "is no file descriptor" },
                { "--file -1 /x true", "is no file descriptor" },
                { "--file 2147483647 /x true", "cannot use fd" },
                { "--args 2147483647 true", "cannot use fd" },
                { "--overlay-src / true", "--overlay-src must come before" },
                { "--overlay-src / --dir /x true", "--overlay-src must come before" },
                { "--overlay-src / --ro-overlay / true", "at least 2" },
                { "--tmp-overlay / true", "at least 1" },
                { "--info-fd 0 --json-status-fd 0 true", "different descriptors" },
                { "--userns-block-fd 0 true", "needs --info-fd" },
                { "--setenv A=B x true", "is no name" },
                { "--cap-add CAP_NOPE true", "CAP_NOPE" },
                { "--exec-label x true", "SELinux" },
        };
        BwrapWords words;
        Error error;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                error.text[0] = '\0';
                if (parse(cases[i].line, &words, &error) >= 0 || !strstr(error.text, cases[i].why))
                        fail_msg("<%s>: %s", cases[i].line, error.text);
                bwrap_words_clear(&words);
        }
}

static void test_environment(void **state) {
        BwrapWords words;
        Error error;

        (void)state;
        assert_int_equal(parse("--setenv B x --unsetenv A --setenv B y=z true", &words, &error), 0);
        assert_int_equal(words.env.count, 2);
        assert_string_equal(words.env.items[0], "AB=2");
        assert_string_equal(words.env.items[1], "B=y=z");
        assert_null(words.env.items[2]);
        bwrap_words_clear(&words);
}

/* Returns a descriptor of a file with `count` copies of a text. Its bytes may be NUL. */
static int repeated(const char *text, size_t length, size_t count) {
        int fd = sys_memfd_create("args", MFD_CLOEXEC);

        assert_true(fd >= 0);
        for (size_t i = 0; i < count; i++)
                assert_int_equal(sys_write_all(fd, text, length), 0);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        return fd;
}

#define REPEATED(text, count) repeated(text, sizeof(text) - 1, count)

/* Parses a file of options. Returns whether it was accepted; *steps is their number. */
static bool parse_file(int fd, size_t *steps, Error *error) {
        BwrapWords words;
        char line[64];
        int r;

        (void)snprintf(line, sizeof(line), "--args %d true", fd);
        r = parse(line, &words, error);
        *steps = words.assembly.count;
        bwrap_words_clear(&words);
        assert_int_equal(fcntl(fd, F_GETFD), -1);
        return r == 0;
}

static void test_files(void **state) {
        size_t steps;
        Error error;

        (void)state;
        assert_true(parse_file(REPEATED("--dir\0/x\0", 4096), &steps, &error));
        assert_int_equal(steps, ASSEMBLY_STEPS_MAX);
        assert_false(parse_file(REPEATED("--dir\0/x\0", 4097), &steps, &error));
        assert_string_equal(error.text, "too many options");
        assert_true(parse_file(REPEATED("--lock-file\0/x\0", 64), &steps, &error));
        assert_false(parse_file(REPEATED("--lock-file\0/x\0", 65), &steps, &error));
        assert_string_equal(error.text, "too many --lock-file");
        assert_true(parse_file(REPEATED("--new-session\0", 65536), &steps, &error));
        assert_false(parse_file(REPEATED("--new-session\0", 65537), &steps, &error));
        assert_true(parse_file(REPEATED("", 0), &steps, &error));
        assert_true(parse_file(REPEATED("--new-session", 1), &steps, &error));
        assert_false(parse_file(REPEATED("--dir\0", 1), &steps, &error));
        assert_false(parse_file(REPEATED("\0", 1), &steps, &error));
        assert_false(parse_file(REPEATED("--\0true\0", 1), &steps, &error));
        assert_false(parse_file(REPEATED("--new-session\0", (8 << 20) / 14 + 1), &steps, &error));
        assert_non_null(strstr(error.text, "cannot read"));
}

/* Descriptors of options are not for the command. */
static void test_descriptors(void **state) {
        const int fd = sys_memfd_create("data", 0);
        BwrapWords words;
        char line[64];
        Error error;

        (void)state;
        (void)snprintf(line, sizeof(line), "--file %d /x true", fd);
        assert_int_equal(parse(line, &words, &error), 0);
        assert_int_equal(words.assembly.steps[0].fd, fd);
        assert_int_equal(words.assembly.steps[0].mode, 0666);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        bwrap_words_clear(&words);
        (void)close(fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_accepted),    cmocka_unit_test(test_refused),
                cmocka_unit_test(test_environment), cmocka_unit_test(test_files),
                cmocka_unit_test(test_descriptors),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
