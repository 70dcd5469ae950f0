/* SPDX-License-Identifier: Apache-2.0 */
/* An attacker inside exchanges directories and links constantly while calls run. No file in
 * "outside" may change (the fixture checks), and no call may read one. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/sys.h"
#include "files-fixture.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

/* A few races show only in a thousand rounds; HOLT_TEST_FULL looks for those. */
static int files_races_rounds(void) {
        return getenv("HOLT_TEST_FULL") ? 10000 : 1000;
}

static void swap(const char *a, const char *b) {
        (void)syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
}

/* Makes "dir" a directory or a link to the outside, and also "dir/file" and "tree/x/y". */
static void attack(const char *outside) {
        for (;;) {
                swap("root/work/dir", "root/work/link");
                swap("root/work/dir/file", "root/work/secret");
                swap("root/work/dir", "root/work/link");
                (void)mkdir("root/work/tree", 0755);
                (void)mkdir("root/work/tree/x", 0755);
                (void)mkdir("root/work/tree/x/y", 0755);
                (void)!symlink(outside, "root/work/tree/z");
                swap("root/work/tree/x/y", "root/work/tree/z");
                swap("root/work/tree/x", "root/work/link2");
                swap("root/work/tree/x", "root/work/link2");
        }
}

static pid_t start_attack(Fixture *f) {
        char outside[128], secret[128];
        pid_t pid;

        (void)snprintf(outside, sizeof(outside), "%s/outside", f->path);
        (void)snprintf(secret, sizeof(secret), "%s/outside/secret", f->path);
        assert_int_equal(mkdir("root/work/dir", 0755), 0);
        make_file("root/work/dir/file", "inside");
        make_file("root/work/dir/secret", "inside");
        assert_int_equal(symlink("../../outside", "root/work/link"), 0);
        assert_int_equal(symlink(outside, "root/work/link2"), 0);
        assert_int_equal(symlink(secret, "root/work/secret"), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                /* A failed test does not reach the code that stops the attacker. */
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                attack(outside);
        }
        return pid;
}

static void stop_attack(pid_t pid) {
        int status;

        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void assert_inside(const char *text) {
        if (strstr(text, "outside"))
                fail_msg("read what is outside: %s", text);
}

static void test_write_and_read(void **state) {
        Fixture *f = *state;
        pid_t pid = start_attack(f);

        for (int i = 0; i < files_races_rounds(); i++) {
                static const char *const paths[] = { "dir/file", "dir/secret", "link/secret",
                                                     "secret", "dir/new" };
                const char *path = paths[(size_t)i % ELEMENTSOF(paths)];
                _cleanup_free_ char *data = NULL;
                size_t length;
                bool eof;

                (void)files_write(f->files, path, "inside", 6, 0, i % 3 == 0, NULL);
                (void)files_append(f->files, path, "inside", 6, NULL, NULL);
                if (files_read(f->files, path, 0, 4096, &data, &length, &eof, NULL) == 0)
                        assert_inside(data);
        }
        stop_attack(pid);
}

static int found_line(void *data, const char *name, uint64_t line, const char *text) {
        (void)data;
        (void)name;
        (void)line;
        assert_inside(text);
        return 0;
}

/* A file of "outside" is recognised by its time. */
static int found_name(void *data, const char *name, const FileStat *stat) {
        (void)data;
        (void)name;
        assert_true(stat->modified_ms != UINT64_C(1000000000000));
        return 0;
}

static void test_search(void **state) {
        Fixture *f = *state;
        pid_t pid = start_attack(f);

        for (int i = 0; i < files_races_rounds() / 4; i++) {
                bool more;
                FilesMissed missed;

                (void)files_list(f->files, "/", true, "", 0, found_name, NULL, &more, &missed,
                                 NULL);
                (void)files_glob(f->files, ".", "**/secret", 0, found_name, NULL, &more, NULL);
                (void)files_grep(f->files, ".", "stays", false, NULL, 0, found_line, NULL, &more,
                                 NULL);
        }
        stop_attack(pid);
}

static void test_remove_move_and_copy(void **state) {
        Fixture *f = *state;
        pid_t pid = start_attack(f);

        for (int i = 0; i < files_races_rounds(); i++) {
                uint64_t left_out;
                bool more;

                (void)files_copy(f->files, "tree", "dir/copy", true, true, &left_out, NULL);
                (void)files_move(f->files, "tree", "dir/moved", true, NULL);
                (void)files_remove(f->files, i % 2 ? "tree" : "dir/moved", true, NULL);
                (void)files_remove(f->files, "dir/copy", true, NULL);
                (void)files_remove(f->files, "dir/secret", true, NULL);
                (void)files_mkdir(f->files, "dir/secret/x", 0, true, NULL);
                if (i % 100 == 0)
                        (void)files_grep(f->files, "dir", "stays", false, NULL, 0, found_line, NULL,
                                         &more, NULL);
        }
        stop_attack(pid);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                files_test(test_write_and_read),
                files_test(test_search),
                files_test(test_remove_move_and_copy),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
