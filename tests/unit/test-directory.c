/* SPDX-License-Identifier: Apache-2.0 */
/* Tests sessions on disk: names, creation and removal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/strings.h"
#include "base/sys.h"
#include "session/live.h"

static char home[64];

static int setup(void **state) {
        (void)state;
        (void)strcpy(home, "/tmp/holt-directory-XXXXXX");
        return mkdtemp(home) && setenv("XDG_DATA_HOME", home, 1) == 0 ? 0 : -1;
}

static int remove_one(void *data, const char *name, int dir_fd) {
        (void)data;
        return session_remove(name, dir_fd, NULL);
}

static int remove_named(const char *name) {
        _cleanup_close_ int dir_fd = FD_NONE;
        int r = session_open(name, &dir_fd, NULL, NULL);

        return r < 0 ? r : session_remove(name, dir_fd, NULL);
}

/* Only the directories that lead there may be left. */
static int teardown(void **state) {
        char path[128];

        (void)state;
        (void)session_each(remove_one, NULL, NULL);
        (void)snprintf(path, sizeof(path), "%s/holt/sessions", home);
        if (rmdir(path) < 0)
                return errno == ENOENT ? rmdir(home) : -1;
        (void)snprintf(path, sizeof(path), "%s/holt", home);
        return rmdir(path) == 0 && rmdir(home) == 0 ? 0 : -1;
}

static void make(const char *name) {
        SessionMaking making;
        Error error;

        assert_int_equal(session_prepare(name, &making, &error), 0);
        assert_int_equal(session_publish(&making, name, &error), 0);
}

static int add_name(void *data, const char *name, int dir_fd) {
        char *names = data;

        assert_true(dir_fd >= 0);
        (void)strcat(names, name);
        (void)strcat(names, " ");
        return 0;
}

static void assert_sessions(const char *expected) {
        char names[1024] = "";

        assert_int_equal(session_each(add_name, names, NULL), 0);
        assert_string_equal(names, expected);
}

/* --- names --- */

static void test_names(void **state) {
        static const char *const right[] = { "a", "Z9", "a.b_c-d", "0", "a..", "con" };
        static const char *const wrong[] = { "",     ".",   "..",  ".a",       "-a", "_a",  "a/b",
                                             "/abs", "a b", "a\n", "\xc3\xa4", "a*", "a\\b" };
        char longest[SESSION_NAME_MAX + 2];
        Error error;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(right); i++)
                assert_int_equal(session_name_check(right[i], &error), 0);
        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                assert_int_equal(session_name_check(wrong[i], &error), -EINVAL);
                assert_int_equal(error.kind, ERROR_USAGE);
                assert_true(error.cure[0] != '\0');
                assert_null(strchr(error.text, '\n'));
        }
        memset(longest, 'a', sizeof(longest));
        longest[SESSION_NAME_MAX] = '\0';
        assert_int_equal(session_name_check(longest, &error), 0);
        longest[SESSION_NAME_MAX] = 'a';
        longest[SESSION_NAME_MAX + 1] = '\0';
        assert_int_equal(session_name_check(longest, &error), -EINVAL);
}

/* --- creation and removal --- */

static void test_a_session_has_its_parts(void **state) {
        static const char *const parts[] = { "root", "workspace", "files" };
        char path[PATH_MAX], expected[128];
        struct stat st;
        int fd;

        (void)state;
        make("one");
        assert_int_equal(session_open("one", &fd, path, NULL), 0);
        (void)snprintf(expected, sizeof(expected), "%s/holt/sessions/one", home);
        assert_string_equal(path, expected);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0700);
        for (size_t i = 0; i < ELEMENTSOF(parts); i++)
                assert_int_equal(faccessat(fd, parts[i], X_OK, 0), 0);
        fd_close(fd);
}

static void test_nobody_sees_half_a_session(void **state) {
        SessionMaking making;
        int fd;

        (void)state;
        assert_int_equal(session_prepare("one", &making, NULL), 0);
        assert_sessions("");
        assert_int_equal(session_open("one", &fd, NULL, NULL), -ENOENT);
        session_discard(&making);
        assert_int_equal(faccessat(AT_FDCWD, making.path, F_OK, 0), -1);
        assert_sessions("");
}

static void test_one_of_two_sessions_of_a_name_wins(void **state) {
        SessionMaking first, second;
        Error error;

        (void)state;
        assert_int_equal(session_prepare("one", &first, NULL), 0);
        assert_int_equal(session_prepare("one", &second, NULL), 0);
        assert_int_equal(session_publish(&second, "one", &error), 0);
        assert_int_equal(session_publish(&first, "one", &error), -EEXIST);
        assert_int_equal(error.kind, ERROR_EXISTS);
        session_discard(&first);
        assert_int_equal(session_prepare("one", &first, &error), -EEXIST);
        assert_int_equal(error.kind, ERROR_EXISTS);
        assert_sessions("one ");
}

/* --- leftovers of a killed holt --- */

static bool is_there(const char *path) {
        return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The kernel does this for a process that is killed. */
static void die(SessionMaking *making) {
        unfinished_leave(&making->unfinished);
        making->base_fd = fd_close(making->base_fd);
}

static void leave_half(char path[PATH_MAX]) {
        SessionMaking making;

        assert_int_equal(session_prepare("half", &making, NULL), 0);
        (void)strcpy(path, making.path);
        die(&making);
}

static void list(void) {
        assert_sessions("one ");
}

static void make_another(void) {
        make("two");
}

static void remove_another(void) {
        make("two");
        assert_int_equal(remove_named("two"), 0);
}

static void test_abandoned_sessions_are_removed(void **state) {
        void (*const uses[])(void) = { list, make_another, remove_another };
        char path[PATH_MAX];

        (void)state;
        make("one");
        for (size_t i = 0; i < ELEMENTSOF(uses); i++) {
                leave_half(path);
                assert_true(is_there(path));
                uses[i]();
                assert_false(is_there(path));
                if (i > 0)
                        (void)remove_named("two");
        }
}

/* A session that was being removed has the name of an unfinished one, and a note. */
static void test_half_removed_sessions_are_removed(void **state) {
        char path[256], gone[PATH_MAX], half[128];
        int dir_fd, base_fd;

        (void)state;
        make("one");
        (void)snprintf(path, sizeof(path), "%s/holt/sessions/one", home);
        leave_half(gone);
        base_fd = open(home, O_PATH | O_DIRECTORY);
        assert_int_equal(rename(gone, strcat(strcpy(half, home), "/half")), 0);
        assert_int_equal(files_remove_tree(base_fd, "half"), 0);
        fd_close(base_fd);
        assert_int_equal(session_open("one", &dir_fd, NULL, NULL), 0);
        assert_int_equal(mkdirat(dir_fd, "workspace/closed", 0000), 0);
        fd_close(dir_fd);
        assert_int_equal(rename(path, gone), 0);
        assert_sessions("");
        assert_false(is_there(gone));
}

static void test_unfinished_sessions_in_use_stay(void **state) {
        SessionMaking making;

        (void)state;
        make("one");
        assert_int_equal(session_prepare("half", &making, NULL), 0);
        assert_sessions("one ");
        remove_another();
        assert_true(is_there(making.path));
        assert_int_equal(session_publish(&making, "half", NULL), 0);
        assert_sessions("half one ");
}

/* A note is a file with exactly such a name. Directories without a note stay. */
static void test_directories_without_a_note_stay(void **state) {
        static const char *const names[] = {
                ".session-0123456789abcde",   ".session-0123456789abcdeg",
                ".session-0123456789abcdef0", ".session-0123456789abcdef",
                ".holt-0123456789abcdef",     ".other"
        };
        char path[256], link[256];

        (void)state;
        make("one");
        (void)snprintf(link, sizeof(link), "%s/holt/sessions/.session-fedcba9876543210", home);
        assert_int_equal(symlink("one", link), 0);
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                (void)snprintf(path, sizeof(path), "%s/holt/sessions/%s", home, names[i]);
                assert_int_equal(mkdir(path, 0700), 0);
                assert_sessions("one ");
                assert_int_equal(rmdir(path), 0);
        }
        assert_int_equal(unlink(link), 0);
}

static void test_they_are_listed_by_name(void **state) {
        char path[128];

        (void)state;
        make("b");
        make("a");
        make("B");
        (void)snprintf(path, sizeof(path), "%s/holt/sessions/.other", home);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_sessions("B a b ");
        assert_int_equal(rmdir(path), 0);
}

static void test_one_that_is_not_there(void **state) {
        Error error;
        int fd;

        (void)state;
        make("work");
        assert_int_equal(session_open("wrok", &fd, NULL, &error), -ENOENT);
        assert_int_equal(error.kind, ERROR_MISSING);
        assert_non_null(strstr(error.cure, "\"work\""));
        assert_int_equal(session_open("../work", &fd, NULL, &error), -EINVAL);
}

/* A link in place of a session's directory does not count as a session. */
static void test_no_link_is_followed(void **state) {
        char path[128];
        int fd;

        (void)state;
        make("work");
        (void)snprintf(path, sizeof(path), "%s/holt/sessions/link", home);
        assert_int_equal(symlink("work", path), 0);
        assert_true(session_open("link", &fd, NULL, NULL) < 0);
        assert_int_equal(unlink(path), 0);
}

/* Leftovers of a command: closed directories, deep trees, links to the outside. */
static void test_removing_a_session_removes_its_leftovers(void **state) {
        char outside[128], path[256];
        int fd;

        (void)state;
        make("one");
        (void)snprintf(outside, sizeof(outside), "%s/outside", home);
        assert_int_equal(mkdir(outside, 0700), 0);
        (void)snprintf(path, sizeof(path), "%s/holt/sessions/one/workspace/link", home);
        assert_int_equal(symlink(outside, path), 0);
        (void)snprintf(path, sizeof(path), "%s/holt/sessions/one/workspace/closed", home);
        assert_int_equal(mkdir(path, 0700), 0);
        (void)strcat(path, "/below");
        assert_int_equal(mkdir(path, 0), 0);
        assert_int_equal(remove_named("one"), 0);
        assert_sessions("");
        assert_int_equal(session_open("one", &fd, NULL, NULL), -ENOENT);
        assert_int_equal(rmdir(outside), 0);
}

/* Another process has removed the session, or is doing so. A new session may have the name by then,
 * and even a keeper. */
static void test_another_by_its_name_stays(void **state) {
        char path[256], aside[256];
        Error error;

        (void)state;
        (void)snprintf(path, sizeof(path), "%s/holt/sessions/one", home);
        (void)snprintf(aside, sizeof(aside), "%s/holt/sessions/two", home);
        for (int done = 0; done <= 1; done++) {
                _cleanup_close_ int dir_fd = FD_NONE;

                make("one");
                assert_int_equal(session_open("one", &dir_fd, NULL, NULL), 0);
                assert_int_equal(rename(path, aside), 0);
                if (done)
                        assert_int_equal(remove_named("two"), 0);
                make("one");
                assert_int_equal(session_remove("one", dir_fd, &error), -ENOENT);
                assert_int_equal(error.kind, ERROR_MISSING);
                assert_sessions(done ? "one " : "one two ");
                (void)session_each(remove_one, NULL, NULL);
        }
}

/* --- the lock and the socket --- */

static void test_one_holds_the_lock(void **state) {
        int dir_fd, lock_fd, other_fd;
        Error error;

        (void)state;
        make("one");
        assert_int_equal(session_open("one", &dir_fd, NULL, NULL), 0);
        assert_false(session_is_live(dir_fd));
        assert_int_equal(session_lock(dir_fd, &lock_fd, NULL), 0);
        assert_true(session_is_live(dir_fd));
        assert_int_equal(session_lock(dir_fd, &other_fd, &error), -EWOULDBLOCK);
        assert_int_equal(error.kind, ERROR_BUSY);
        fd_close(lock_fd);
        assert_false(session_is_live(dir_fd));
        fd_close(dir_fd);
}

/* The directory's path may be longer than a socket's path can be. */
static void test_a_socket_has_no_long_path(void **state) {
        char name[SESSION_NAME_MAX + 1];
        int dir_fd, listen_fd, fd;

        (void)state;
        memset(name, 'n', SESSION_NAME_MAX);
        name[SESSION_NAME_MAX] = '\0';
        make(name);
        assert_int_equal(session_open(name, &dir_fd, NULL, NULL), 0);
        assert_int_equal(session_connect(dir_fd, &fd, NULL), -ENOENT);
        assert_int_equal(session_listen(dir_fd, &listen_fd, NULL), 0);
        assert_int_equal(session_connect(dir_fd, &fd, NULL), 0);
        fd_close(fd);
        fd_close(listen_fd);
        assert_int_equal(session_connect(dir_fd, &fd, NULL), -ENOENT);
        assert_int_equal(session_listen(dir_fd, &listen_fd, NULL), 0);
        fd_close(listen_fd);
        fd_close(dir_fd);
}

#define directory_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),
                directory_test(test_a_session_has_its_parts),
                directory_test(test_nobody_sees_half_a_session),
                directory_test(test_one_of_two_sessions_of_a_name_wins),
                directory_test(test_abandoned_sessions_are_removed),
                directory_test(test_half_removed_sessions_are_removed),
                directory_test(test_unfinished_sessions_in_use_stay),
                directory_test(test_directories_without_a_note_stay),
                directory_test(test_they_are_listed_by_name),
                directory_test(test_one_that_is_not_there),
                directory_test(test_no_link_is_followed),
                directory_test(test_removing_a_session_removes_its_leftovers),
                directory_test(test_another_by_its_name_stays),
                directory_test(test_one_holds_the_lock),
                directory_test(test_a_socket_has_no_long_path),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
