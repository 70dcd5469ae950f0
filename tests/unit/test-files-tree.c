/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "files-fixture.h"
#include "files/walk.h"

/* --- remove --- */

static void test_remove(void **state) {
        Fixture *f = *state;

        assert_int_equal(mkdir("root/work/dir", 0755), 0);
        make_file("root/work/dir/file", "x");
        assert_int_equal(symlink("dir", "root/work/link"), 0);
        assert_fails(f, files_remove(f->files, "dir", false, &f->error), ERROR_USAGE, ENOTEMPTY);
        assert_fails(f, files_remove(f->files, "absent", true, &f->error), ERROR_MISSING, ENOENT);
        assert_works(f, files_remove(f->files, "link", true, &f->error));
        assert_file("root/work/dir/file", "x");
        assert_works(f, files_remove(f->files, "dir/", true, &f->error));
        assert_false(there("root/work/dir"));
}

static void test_remove_follows_no_link(void **state) {
        Fixture *f = *state;
        char outside[128];

        (void)snprintf(outside, sizeof(outside), "%s/outside", f->path);
        assert_int_equal(mkdir("root/work/dir", 0755), 0);
        assert_int_equal(symlink(outside, "root/work/dir/absolute"), 0);
        assert_int_equal(symlink("../../../outside", "root/work/dir/relative"), 0);
        assert_int_equal(mkfifo("root/work/dir/fifo", 0), 0);
        assert_works(f, files_remove(f->files, "dir", true, &f->error));
        assert_false(there("root/work/dir"));
}

static void test_remove_what_was_closed(void **state) {
        Fixture *f = *state;

        become_user(f);
        assert_int_equal(mkdir("root/work/a", 0755), 0);
        assert_int_equal(mkdir("root/work/a/b", 0755), 0);
        make_file("root/work/a/b/file", "x");
        assert_int_equal(chmod("root/work/a/b", 0), 0);
        assert_int_equal(chmod("root/work/a", 0555), 0);
        assert_works(f, files_remove(f->files, "a", true, &f->error));
        assert_false(there("root/work/a"));
        become_root();
}

/* Removes a tree by an O_PATH fd of its directory alone. */
static void test_remove_a_tree_of_the_host_s(void **state) {
        _cleanup_close_ int fd = open("root/work", O_PATH | O_DIRECTORY | O_CLOEXEC);

        (void)state;
        assert_int_equal(mkdir("root/work/dir", 0755), 0);
        assert_int_equal(symlink("../../../outside", "root/work/dir/link"), 0);
        make_file("root/work/dir/file", "x");
        make_file("root/work/other", "y");
        assert_int_equal(files_remove_tree(fd, "absent"), 0);
        assert_true(files_remove_tree(fd, "..") < 0);
        assert_int_equal(files_remove_tree(fd, "dir"), 0);
        assert_false(there("root/work/dir"));
        assert_file("root/work/other", "y");
}

/* The tree is deeper than any walk goes, and no call accepts its path. */
static void test_remove_any_depth(void **state) {
        Fixture *f = *state;
        _cleanup_close_ int fd = open("root/work", O_RDONLY | O_DIRECTORY);

        for (int i = 0; i < 3000; i++) {
                int below;

                assert_int_equal(mkdirat(fd, "deep", 0755), 0);
                below = openat(fd, "deep", O_RDONLY | O_DIRECTORY);
                assert_true(below >= 0);
                fd_close(fd);
                fd = below;
        }
        assert_works(f, files_remove(f->files, "deep", true, &f->error));
        assert_false(there("root/work/deep"));
}

/* --- move --- */

static void test_move(void **state) {
        Fixture *f = *state;

        make_file("root/work/a", "a");
        make_file("root/work/b", "b");
        assert_int_equal(mkdir("root/work/dir", 0755), 0);
        assert_fails(f, files_move(f->files, "a", "b", false, &f->error), ERROR_EXISTS, EEXIST);
        assert_works(f, files_move(f->files, "a", "b", true, &f->error));
        assert_file("root/work/b", "a");
        assert_false(there("root/work/a"));
        assert_works(f, files_move(f->files, "b", "dir/c", false, &f->error));
        assert_file("root/work/dir/c", "a");
        make_file("root/work/a", "a");
        assert_fails(f, files_move(f->files, "a", "dir", true, &f->error), ERROR_USAGE, EISDIR);
        assert_fails(f, files_move(f->files, "dir", "dir/dir", false, &f->error), ERROR_USAGE,
                     EINVAL);
        assert_fails(f, files_move(f->files, "x", "y", false, &f->error), ERROR_MISSING, ENOENT);
        assert_works(f, files_mkdir(f->files, "full/x", 0, true, &f->error));
        assert_fails(f, files_move(f->files, "dir", "full", true, &f->error), ERROR_USAGE,
                     ENOTEMPTY);
}

/* --- copy --- */

static void make_tree(void) {
        const struct timespec times[] = { { .tv_sec = 1500000000 }, { .tv_sec = 1500000000 } };

        assert_int_equal(mkdir("root/work/tree", 0755), 0);
        assert_int_equal(mkdir("root/work/tree/sub", 0755), 0);
        make_file("root/work/tree/sub/file", "contents");
        /* These tests also run in a sandbox, where nobody may set these bits. */
        if (chmod("root/work/tree/sub/file", 06751) < 0)
                assert_int_equal(chmod("root/work/tree/sub/file", 0751), 0);
        assert_int_equal(utimensat(AT_FDCWD, "root/work/tree/sub/file", times, 0), 0);
        assert_int_equal(symlink("/etc/passwd", "root/work/tree/link"), 0);
        assert_int_equal(mkfifo("root/work/tree/fifo", 0644), 0);
        assert_int_equal(chmod("root/work/tree/sub", 0711), 0);
        assert_int_equal(utimensat(AT_FDCWD, "root/work/tree/sub", times, 0), 0);
}

static void test_copy_a_tree(void **state) {
        Fixture *f = *state;
        uint64_t left_out;
        char target[32] = { 0 };
        struct stat st;

        make_tree();
        assert_fails(f, files_copy(f->files, "tree", "copy", false, false, &left_out, &f->error),
                     ERROR_USAGE, EISDIR);
        assert_works(f, files_copy(f->files, "tree", "copy", true, false, &left_out, &f->error));
        assert_int_equal(left_out, 1);
        assert_file("root/work/copy/sub/file", "contents");
        assert_int_equal(stat("root/work/copy/sub/file", &st), 0);
        assert_int_equal(st.st_mode & 07777, 0751);
        assert_int_equal(st.st_mtime, 1500000000);
        assert_int_equal(stat("root/work/copy/sub", &st), 0);
        assert_int_equal(st.st_mode & 07777, 0711);
        assert_int_equal(st.st_mtime, 1500000000);
        assert_int_equal(readlink("root/work/copy/link", target, sizeof(target) - 1), 11);
        assert_string_equal(target, "/etc/passwd");
        assert_fails(f, files_copy(f->files, "tree", "copy", true, false, &left_out, &f->error),
                     ERROR_EXISTS, EEXIST);
        assert_fails(f, files_copy(f->files, "tree", "copy", true, true, &left_out, &f->error),
                     ERROR_USAGE, ENOTEMPTY);
}

static void test_copy_into_itself_ends(void **state) {
        Fixture *f = *state;
        uint64_t left_out;

        make_tree();
        assert_works(f, files_copy(f->files, "tree", "tree/sub/copy", true, false, &left_out,
                                   &f->error));
        assert_file("root/work/tree/sub/copy/sub/file", "contents");
        assert_false(there("root/work/tree/sub/copy/sub/copy"));
}

static void test_copy_one(void **state) {
        Fixture *f = *state;
        uint64_t left_out;
        struct stat st;

        make_tree();
        assert_works(f, files_copy(f->files, "tree/sub/file", "file", false, false, &left_out,
                                   &f->error));
        assert_file("root/work/file", "contents");
        assert_works(f,
                     files_copy(f->files, "tree/link", "file", false, true, &left_out, &f->error));
        assert_int_equal(lstat("root/work/file", &st), 0);
        assert_true(S_ISLNK(st.st_mode));
        assert_fails(f, files_copy(f->files, "tree/fifo", "x", true, true, &left_out, &f->error),
                     ERROR_USAGE, EOPNOTSUPP);
}

static void test_copy_too_deep_leaves_nothing(void **state) {
        Fixture *f = *state;
        char path[PATH_MAX] = "root/work/deep";
        uint64_t left_out;

        for (int i = 0; i < FILES_DEPTH_MAX + 6; i++) {
                assert_int_equal(mkdir(path, 0755), 0);
                (void)strcat(path, "/d");
        }
        assert_int_equal(mkdir("root/to", 0755), 0);
        assert_fails(f, files_copy(f->files, "deep", "/to/x", true, false, &left_out, &f->error),
                     ERROR_LIMIT, E2BIG);
        assert_non_null(strstr(f->error.text, "deep/d/d/d"));
        assert_works(f, files_remove(f->files, "/to", false, &f->error));
}

/* --- mounts --- */

static void write_map(const char *path, unsigned id) {
        char map[32];

        (void)snprintf(map, sizeof(map), "%u %u 1", id, id);
        make_file(path, map);
}

static int unshare_mounts(void) {
        unsigned uid = geteuid(), gid = getegid();

        if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0)
                return -errno;
        if (uid == 0)
                return 0;
        make_file("/proc/self/setgroups", "deny");
        write_map("/proc/self/uid_map", uid);
        write_map("/proc/self/gid_map", gid);
        return 0;
}

/* Mounts in new namespaces: "guarded" is a mount on itself, "config" a file mounted on itself,
 * "tmp" a tmpfs. */
static int mount_inside(void) {
        int r = unshare_mounts();

        if (r < 0)
                return r;
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("root/work/guarded", "root/work/guarded", NULL, MS_BIND, NULL) < 0 ||
            mount("root/work/config", "root/work/config", NULL, MS_BIND, NULL) < 0 ||
            mount(NULL, "root/work/config", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0 ||
            mount("tmpfs", "root/tmp", "tmpfs", 0, "mode=0777") < 0)
                return -errno;
        return 0;
}

/* Starts a process that holds the mounts until stop is closed. */
static pid_t start_inside(int *ret_stop) {
        int ready[2], stop[2], r = -1;
        pid_t pid;

        assert_int_equal(pipe(ready), 0);
        assert_int_equal(pipe(stop), 0);
        pid = fork();
        if (pid == 0) {
                fd_close(stop[1]);
                r = mount_inside();
                (void)!write(ready[1], &r, sizeof(r));
                _exit((int)read(stop[0], &r, 1));
        }
        fd_close(stop[0]);
        fd_close(ready[1]);
        assert_int_equal(read(ready[0], &r, sizeof(r)), sizeof(r));
        fd_close(ready[0]);
        *ret_stop = stop[1];
        if (r == 0)
                return pid;
        (void)fprintf(stderr, "no mounts here: %s\n", strerror(-r));
        fd_close(stop[1]);
        (void)waitpid(pid, NULL, 0);
        return 0;
}

static void enter_view(Fixture *f, pid_t pid) {
        char path[128];

        (void)snprintf(path, sizeof(path), "/proc/%d/root%s/root", (int)pid, f->path);
        fd_close(f->root_fd);
        f->root_fd = open(path, O_PATH | O_DIRECTORY);
        assert_true(f->root_fd >= 0);
        f->files = files_free(f->files);
        assert_works(f, files_new(f->root_fd, "/work", &f->files, &f->error));
}

/* In the keeper's mount namespace, a guard's mount point is an ordinary file. The kernel would
 * remove the guard with it. */
static void check_guards(Fixture *f) {
        uint64_t n;

        assert_fails(f, files_remove(f->files, "guarded", false, &f->error), ERROR_USAGE, EBUSY);
        assert_fails(f, files_remove(f->files, "config", false, &f->error), ERROR_USAGE, EBUSY);
        assert_fails(f, files_move(f->files, "guarded", "x", true, &f->error), ERROR_USAGE, EBUSY);
        assert_fails(f, files_move(f->files, "config", "x", true, &f->error), ERROR_USAGE, EBUSY);
        assert_fails(f, files_move(f->files, "file", "config", true, &f->error), ERROR_USAGE,
                     EBUSY);
        assert_fails(f, files_copy(f->files, "file", "config", false, true, &n, &f->error),
                     ERROR_USAGE, EBUSY);
        assert_fails(f, write_text(f, "config", "x"), ERROR_USAGE, EBUSY);
        assert_fails(f, files_append(f->files, "config", "x", 1, NULL, &f->error), ERROR_USAGE,
                     EROFS);
        assert_fails(f, files_remove(f->files, "/work", true, &f->error), ERROR_USAGE, EBUSY);
        assert_string_equal(read_text(f, "config"), "config");
        assert_file("root/work/config", "config");
        assert_true(there("root/work/guarded"));
        /* The paths are still mounted. */
        assert_fails(f, files_append(f->files, "config", "x", 1, NULL, &f->error), ERROR_USAGE,
                     EROFS);
}

static void check_moves_across(Fixture *f) {
        make_file("root/work/crossing", "crosses");
        make_tree();
        assert_works(f, files_move(f->files, "crossing", "/tmp/crossing", false, &f->error));
        assert_false(there("root/work/crossing"));
        assert_false(there("root/tmp/crossing"));
        assert_string_equal(read_text(f, "/tmp/crossing"), "crosses");
        assert_fails(f, files_move(f->files, "tree", "/tmp/tree", false, &f->error), ERROR_USAGE,
                     EOPNOTSUPP);
        assert_string_equal(read_text(f, "tree/sub/file"), "contents");
        assert_int_equal(unlink("root/work/tree/fifo"), 0);
        assert_works(f, files_move(f->files, "tree", "/tmp/tree", false, &f->error));
        assert_string_equal(read_text(f, "/tmp/tree/sub/file"), "contents");
        assert_false(there("root/work/tree"));
}

static void test_mounts(void **state) {
        Fixture *f = *state;
        int stop = FD_NONE;
        pid_t pid;

        assert_int_equal(mkdir("root/work/guarded", 0755), 0);
        assert_int_equal(mkdir("root/tmp", 0755), 0);
        make_file("root/work/config", "config");
        make_file("root/work/file", "file");
        pid = start_inside(&stop);
        if (pid == 0)
                skip();
        enter_view(f, pid);
        check_moves_across(f);
        check_guards(f);
        fd_close(stop);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* --- cancelling --- */

static void test_cancelled_work_ends(void **state) {
        Fixture *f = *state;
        const atomic_bool stop = true;
        uint64_t left_out = 0;

        assert_int_equal(mkdir("root/work/dir", 0755), 0);
        make_file("root/work/dir/file", "x");
        assert_null(walk_until(&stop));
        assert_fails(f, files_remove(f->files, "dir", true, &f->error), ERROR_SETUP, ECANCELED);
        assert_fails(f, files_copy(f->files, "dir", "copy", true, false, &left_out, &f->error),
                     ERROR_SETUP, ECANCELED);
        assert_fails(f,
                     files_copy(f->files, "dir/file", "copy", false, false, &left_out, &f->error),
                     ERROR_SETUP, ECANCELED);
        assert_ptr_equal(walk_until(NULL), &stop);
        assert_file("root/work/dir/file", "x");
        assert_works(f, files_remove(f->files, "dir", true, &f->error));
        /* The copies left no file. */
        assert_int_equal(rmdir("root/work"), 0);
        assert_int_equal(mkdir("root/work", 0755), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                files_test(test_cancelled_work_ends),
                files_test(test_remove),
                files_test(test_remove_follows_no_link),
                files_test(test_remove_what_was_closed),
                files_test(test_remove_a_tree_of_the_host_s),
                files_test(test_remove_any_depth),
                files_test(test_move),
                files_test(test_copy_a_tree),
                files_test(test_copy_into_itself_ends),
                files_test(test_copy_one),
                files_test(test_copy_too_deep_leaves_nothing),
                files_test(test_mounts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
