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

#include "base/beneath.h"
#include "base/util.h"

static const struct {
        const char *path,
                *target; /* without a target: a directory, or a file if the name has a dot */
} entries[] = {
        { "mine", NULL },
        { "mine/file.txt", NULL },
        { "mine/deep", NULL },
        { "mine/deep/file.txt", NULL },
        { "theirs", NULL },
        { "theirs/file.txt", NULL },
        { "theirs/deep", NULL },
        { "theirs/deep/file.txt", NULL },
        { "theirs/link.txt", "../mine/file.txt" },
        { "theirs/out", "../mine" },
        { "relative", "mine/deep" },
        { "slash", "mine/deep/" },
        { "dots", "./mine/./deep/../deep/." },
        { "twice", "relative/../../slash" },
        { "link.txt", "relative/file.txt" },
        { "loop", "loop" },
        { "dangling", "mine/none" },
        { "into", "theirs/deep" },
        { "into.txt", "theirs/deep/file.txt" },
        { "beyond.txt", "theirs/link.txt" },
        { "beyond", "theirs/out" },
        { "back", "theirs/../mine" },
};

/* The kernel itself decides about chains of links and whole paths. */
static const char *const paths[] = {
        "",
        "/",
        "/mine",
        "/mine/",
        "/mine/file.txt",
        "/mine/file.txt/",
        "/mine/file.txt/more",
        "/mine/none",
        "/none/none",
        "/relative",
        "/relative/file.txt",
        "/slash/file.txt",
        "/dots/file.txt",
        "/twice/file.txt",
        "/link.txt",
        "/loop",
        "/loop/more",
        "/dangling",
        "/dangling/more",
        "/mine/../relative/../file.txt",
};

typedef struct Place {
        char path[64];
        StrList theirs; /* the untrusted directory */
} Place;

static int make_place(void **state) {
        Place *place = calloc(1, sizeof(*place));
        char inside[80];

        (void)strcpy(place->path, "/tmp/holt-test-beneath-XXXXXX");
        if (!mkdtemp(place->path) || chdir(place->path) < 0)
                return -1;
        for (size_t i = 0; i < ELEMENTSOF(entries); i++) {
                const char *path = entries[i].path, *target = entries[i].target;
                int r = target              ? symlink(target, path)
                        : strchr(path, '.') ? mknod(path, S_IFREG | 0600, 0)
                                            : mkdir(path, 0700);

                if (r < 0)
                        return -1;
        }
        (void)snprintf(inside, sizeof(inside), "%s/theirs", place->path);
        *state = place;
        return strlist_add(&place->theirs, inside);
}

static int remove_place(void **state) {
        Place *place = *state;

        for (size_t i = ELEMENTSOF(entries); i-- > 0;)
                (void)remove(entries[i].path);
        strlist_clear(&place->theirs);
        if (chdir("/") < 0 || rmdir(place->path) < 0)
                return -1;
        free(place);
        return 0;
}

static int open_in(const Place *place, const char *name, int flags) {
        char path[200];

        (void)snprintf(path, sizeof(path), "%s%s", place->path, name);
        return beneath_open(path, &place->theirs, flags, flags & O_CREAT ? 0600 : 0);
}

static void test_links_of_the_caller(void **state) {
        static const int flags[] = { O_PATH, O_RDONLY, O_RDONLY | O_DIRECTORY };
        const Place *place = *state;

        for (size_t i = 0; i < ELEMENTSOF(paths) * ELEMENTSOF(flags); i++) {
                const char *name = paths[i / ELEMENTSOF(flags)];
                char path[200];
                struct stat st, expected;
                int fd, kernel_fd;

                (void)snprintf(path, sizeof(path), "%s%s", place->path, name);
                kernel_fd = open(path, flags[i % ELEMENTSOF(flags)] | O_CLOEXEC);
                fd = kernel_fd < 0 ? -errno : kernel_fd;
                if (kernel_fd < 0) {
                        assert_int_equal(open_in(place, name, flags[i % ELEMENTSOF(flags)]), fd);
                        continue;
                }
                fd = open_in(place, name, flags[i % ELEMENTSOF(flags)]);
                assert_true(fd >= 0);
                assert_int_equal(fstat(fd, &st), 0);
                assert_int_equal(fstat(kernel_fd, &expected), 0);
                assert_int_equal(st.st_ino, expected.st_ino);
                (void)close(fd);
                (void)close(kernel_fd);
        }
}

static void test_links_in_the_directory(void **state) {
        static const struct {
                const char *name;
                int result; /* 0: it opens */
        } cases[] = {
                { "/theirs/file.txt", 0 },
                { "/theirs/deep/file.txt", 0 },
                { "/into/file.txt", 0 },
                { "/into.txt", 0 },
                { "/back/file.txt", 0 },
                { "/theirs/link.txt", -ELOOP },
                { "/theirs/out/file.txt", -ELOOP },
                { "/beyond.txt", -ELOOP },
                { "/beyond/file.txt", -ELOOP },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                int fd = open_in(*state, cases[i].name, O_RDONLY);

                assert_int_equal(fd < 0 ? fd : 0, cases[i].result);
                if (fd >= 0)
                        (void)close(fd);
        }
}

static void test_a_new_file(void **state) {
        struct stat st;
        int fd = open_in(*state, "/dangling", O_WRONLY | O_CREAT);

        assert_true(fd >= 0);
        assert_int_equal(fstatat(fd, "", &st, AT_EMPTY_PATH), 0);
        (void)close(fd);
        assert_int_equal(unlink("mine/none"), 0);
        assert_int_equal(open_in(*state, "/theirs/out/new", O_WRONLY | O_CREAT), -ELOOP);
}

static void test_links_of_proc(void **state) {
        const Place *place = *state;
        int ends[2], fd;
        struct stat st, expected;
        char path[40];

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
        fd = beneath_open(path, &place->theirs, O_PATH, 0);
        assert_true(fd >= 0);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(fstat(ends[0], &expected), 0);
        assert_int_equal(st.st_ino, expected.st_ino);
        (void)close(fd);
        assert_int_equal(beneath_open("/proc/self/cwd/theirs/link.txt", &place->theirs, O_PATH, 0),
                         -ELOOP);
        (void)close(ends[0]);
        (void)close(ends[1]);
}

/* Behaves like the kernel with fs.protected_symlinks set to 1. */
static void test_a_link_of_somebody_else(void **state) {
        int fd;

        if (geteuid() != 0)
                return;
        assert_int_equal(mkdir("shared", 0700), 0);
        assert_int_equal(chmod("shared", 01777), 0);
        assert_int_equal(symlink("../mine/file.txt", "shared/link"), 0);
        fd = open_in(*state, "/shared/link", O_RDONLY);
        assert_true(fd >= 0);
        (void)close(fd);
        assert_int_equal(lchown("shared/link", 65534, 65534), 0);
        assert_int_equal(open_in(*state, "/shared/link", O_RDONLY), -EACCES);
        assert_int_equal(unlink("shared/link"), 0);
        assert_int_equal(rmdir("shared"), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_links_of_the_caller),
                cmocka_unit_test(test_links_in_the_directory),
                cmocka_unit_test(test_a_new_file),
                cmocka_unit_test(test_links_of_proc),
                cmocka_unit_test(test_a_link_of_somebody_else),
        };

        return cmocka_run_group_tests(tests, make_place, remove_place);
}
