/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "base/sys.h"
#include "files-fixture.h"

/* --- paths --- */

static void test_a_path_is_the_sandboxs(void **state) {
        Fixture *f = *state;

        make_file("root/work/a", "a");
        make_file("root/top", "top");
        assert_string_equal(read_text(f, "a"), "a");
        assert_string_equal(read_text(f, "/work/a"), "a");
        assert_string_equal(read_text(f, "../top"), "top");
        assert_string_equal(read_text(f, "../../../../top"), "top");
        assert_int_equal(symlink("/top", "root/work/absolute"), 0);
        assert_int_equal(symlink("../../../../../top", "root/work/above"), 0);
        assert_string_equal(read_text(f, "absolute"), "top");
        assert_string_equal(read_text(f, "above"), "top");
}

/* ".." after a link means the parent of the link's target, like for any process inside. */
static void test_dots_are_the_kernels(void **state) {
        Fixture *f = *state;

        assert_int_equal(mkdir("root/a", 0755), 0);
        assert_int_equal(mkdir("root/a/b", 0755), 0);
        make_file("root/a/file", "in a");
        assert_int_equal(symlink("/a/b", "root/work/link"), 0);
        assert_string_equal(read_text(f, "link/../file"), "in a");
        assert_works(f, write_text(f, "link/../file", "again"));
        assert_file("root/a/file", "again");
}

static void test_no_link_leads_out(void **state) {
        Fixture *f = *state;
        char outside[128];

        (void)snprintf(outside, sizeof(outside), "%s/outside/secret", f->path);
        assert_int_equal(symlink(outside, "root/work/absolute"), 0);
        assert_int_equal(symlink("../../outside/secret", "root/work/relative"), 0);
        assert_int_equal(symlink("../../outside", "root/work/dir"), 0);
        assert_fails(f, write_text(f, "absolute", "x"), ERROR_MISSING, ENOENT);
        assert_fails(f, write_text(f, "relative", "x"), ERROR_MISSING, ENOENT);
        assert_fails(f, write_text(f, "dir/secret", "x"), ERROR_MISSING, ENOENT);
        assert_works(f, files_write(f->files, "/outside/secret", "x", 1, 0, true, &f->error));
        assert_string_equal(read_text(f, "relative"), "x");
        assert_file("root/outside/secret", "x");
}

static void test_links_in_chains_and_circles(void **state) {
        Fixture *f = *state;
        char name[32], target[32];

        assert_int_equal(symlink("b", "root/work/a"), 0);
        assert_int_equal(symlink("a", "root/work/b"), 0);
        assert_fails(f, write_text(f, "a", "x"), ERROR_USAGE, ELOOP);
        for (int i = 0; i < 39; i++) {
                (void)snprintf(name, sizeof(name), "root/work/chain%d", i);
                (void)snprintf(target, sizeof(target), "chain%d", i + 1);
                assert_int_equal(symlink(target, name), 0);
        }
        assert_works(f, write_text(f, "chain0", "the end"));
        assert_file("root/work/chain39", "the end");
        assert_int_equal(symlink("chain0", "root/work/one"), 0);
        assert_int_equal(symlink("one", "root/work/two"), 0);
        assert_fails(f, write_text(f, "two", "x"), ERROR_USAGE, ELOOP);
}

static void test_paths_that_are_none(void **state) {
        Fixture *f = *state;
        _cleanup_free_ char *path = calloc(1, 5001);

        memset(path, 'a', 5000);
        assert_fails(f, write_text(f, "", "x"), ERROR_MISSING, ENOENT);
        assert_fails(f, write_text(f, ".", "x"), ERROR_USAGE, EINVAL);
        assert_fails(f, write_text(f, "..", "x"), ERROR_USAGE, EINVAL);
        assert_fails(f, write_text(f, "new/", "x"), ERROR_USAGE, EISDIR);
        assert_fails(f, files_remove(f->files, "/", true, &f->error), ERROR_USAGE, EINVAL);
        assert_fails(f, files_remove(f->files, "/work/..", true, &f->error), ERROR_USAGE, EINVAL);
        assert_fails(f, write_text(f, path, "x"), ERROR_USAGE, ENAMETOOLONG);
        path[300] = '\0';
        assert_fails(f, write_text(f, path, "x"), ERROR_USAGE, ENAMETOOLONG);
}

/* The root is the host's, because the test needs /proc. */
static void test_processes_are_not_entered(void **state) {
        Fixture *f = *state;
        _cleanup_close_ int root_fd = open("/", O_PATH | O_DIRECTORY), fd = FD_NONE;
        Files *files = NULL;

        assert_int_equal(files_new(root_fd, "/", &files, NULL), 0);
        assert_fails(f, files_open_read(files, "/proc/self/root/etc/passwd", &fd, &f->error),
                     ERROR_USAGE, ELOOP);
        assert_fails(f, files_open_read(files, "/proc/self/exe", &fd, &f->error), ERROR_USAGE,
                     ELOOP);
        assert_fails(f, files_open_read(files, "/proc/self/status", &fd, &f->error), ERROR_USAGE,
                     EOPNOTSUPP);
        assert_fails(f, files_write(files, "/proc/self/exe", "x", 1, 0, false, &f->error),
                     ERROR_USAGE, ELOOP);
        assert_fails(f, files_write(files, "/proc/self/comm", "x", 1, 0, false, &f->error),
                     ERROR_USAGE, EOPNOTSUPP);
        assert_fails(f, files_append(files, "/proc/self/comm", "x", 1, NULL, &f->error),
                     ERROR_USAGE, EOPNOTSUPP);
        assert_fails(f, files_open_read(files, "/dev/null", &fd, &f->error), ERROR_USAGE,
                     EOPNOTSUPP);
        files_free(files);
}

/* --- read --- */

static void test_read_in_parts(void **state) {
        Fixture *f = *state;
        static const struct {
                uint64_t offset, length;
                const char *text;
                bool eof;
        } cases[] = {
                { 0, 100, "0123456789", true },
                { 0, 10, "0123456789", true },
                { 0, 9, "012345678", false },
                { 3, 4, "3456", false },
                { 8, 2, "89", true },
                { 10, 5, "", true },
                { 11, 5, "", true },
                { UINT64_MAX, UINT64_MAX, "", true },
                { 0, 0, "", false },
                { 10, 0, "", true },
        };

        make_file("root/work/digits", "0123456789");
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *data = NULL;
                size_t length;
                bool eof;

                assert_works(f, files_read(f->files, "digits", cases[i].offset, cases[i].length,
                                           &data, &length, &eof, &f->error));
                assert_string_equal(data, cases[i].text);
                assert_int_equal(length, strlen(cases[i].text));
                assert_int_equal(eof, cases[i].eof);
        }
}

static void test_read_what_is_no_file(void **state) {
        Fixture *f = *state;
        struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "root/work/socket" };
        _cleanup_close_ int socket_fd = socket(AF_UNIX, SOCK_STREAM, 0), fd = FD_NONE;

        assert_int_equal(bind(socket_fd, (const void *)&address, sizeof(address)), 0);
        assert_int_equal(mkfifo("root/work/fifo", 0644), 0);
        assert_fails(f, files_open_read(f->files, "fifo", &fd, &f->error), ERROR_USAGE, EOPNOTSUPP);
        assert_fails(f, files_open_read(f->files, "socket", &fd, &f->error), ERROR_USAGE,
                     EOPNOTSUPP);
        assert_fails(f, files_open_read(f->files, ".", &fd, &f->error), ERROR_USAGE, EISDIR);
        assert_fails(f, files_open_read(f->files, "absent", &fd, &f->error), ERROR_MISSING, ENOENT);
        assert_fails(f, write_text(f, "fifo", "x"), ERROR_USAGE, EOPNOTSUPP);
        assert_fails(f, files_append(f->files, "fifo", "x", 1, NULL, &f->error), ERROR_USAGE,
                     EOPNOTSUPP);
        assert_fails(f, write_text(f, "socket/x", "x"), ERROR_USAGE, ENOTDIR);
        if (mknod("root/work/null", S_IFCHR | 0666, makedev(1, 3)) == 0)
                assert_fails(f, write_text(f, "null", "x"), ERROR_USAGE, EOPNOTSUPP);
}

static void test_a_lease_holds_nobody(void **state) {
        Fixture *f = *state;
        _cleanup_close_ int leased = FD_NONE, fd = FD_NONE;

        make_file("root/work/leased", "x");
        leased = open("root/work/leased", O_RDWR);
        if (fcntl(leased, F_SETLEASE, F_WRLCK) < 0)
                skip();
        (void)fcntl(leased, F_SETSIG, SIGCHLD);
        assert_fails(f, files_open_read(f->files, "leased", &fd, &f->error), ERROR_BUSY, EAGAIN);
        assert_int_equal(fcntl(leased, F_SETLEASE, F_UNLCK), 0);
        assert_works(f, files_open_read(f->files, "leased", &fd, &f->error));
}

static void test_permissions_are_kept(void **state) {
        Fixture *f = *state;
        _cleanup_close_ int fd = FD_NONE;

        become_user(f);
        make_file("root/work/closed", "x");
        assert_int_equal(chmod("root/work/closed", 0), 0);
        assert_fails(f, files_open_read(f->files, "closed", &fd, &f->error), ERROR_USAGE, EACCES);
        assert_int_equal(mkdir("root/work/dir", 0555), 0);
        assert_fails(f, write_text(f, "dir/new", "x"), ERROR_USAGE, EACCES);
        assert_fails(f, files_mkdir(f->files, "dir/new", 0, false, &f->error), ERROR_USAGE, EACCES);
        become_root();
}

/* --- write --- */

static void test_write_and_modes(void **state) {
        Fixture *f = *state;
        struct stat st;

        assert_works(f, write_text(f, "new", "one"));
        assert_int_equal(stat("root/work/new", &st), 0);
        assert_int_equal(st.st_mode & 07777, 0644);
        assert_works(f, files_write(f->files, "new", "", 0, 04755, false, &f->error));
        assert_file("root/work/new", "");
        assert_int_equal(stat("root/work/new", &st), 0);
        assert_int_equal(st.st_mode & 07777, 0755);
        assert_works(f, write_text(f, "new", "three"));
        assert_int_equal(stat("root/work/new", &st), 0);
        assert_int_equal(st.st_mode & 07777, 0755);
        assert_file("root/work/new", "three");
}

static void test_write_through_a_link(void **state) {
        Fixture *f = *state;
        struct stat st;

        assert_int_equal(mkdir("root/work/dir", 0755), 0);
        assert_int_equal(symlink("dir/target", "root/work/link"), 0);
        assert_works(f, write_text(f, "link", "through"));
        assert_file("root/work/dir/target", "through");
        assert_int_equal(lstat("root/work/link", &st), 0);
        assert_true(S_ISLNK(st.st_mode));
}

static void test_write_with_parents(void **state) {
        Fixture *f = *state;

        assert_fails(f, write_text(f, "a/b/c", "x"), ERROR_MISSING, ENOENT);
        assert_works(f, files_write(f->files, "a/./b//../b/c", "x", 1, 0, true, &f->error));
        assert_file("root/work/a/b/c", "x");
        assert_works(f, files_mkdir(f->files, "a/d/e", 0700, true, &f->error));
        assert_works(f, files_mkdir(f->files, "a/d/e", 0700, true, &f->error));
        assert_fails(f, files_mkdir(f->files, "a/d/e", 0700, false, &f->error), ERROR_EXISTS,
                     EEXIST);
        assert_fails(f, files_mkdir(f->files, "a/b/c/d", 0, true, &f->error), ERROR_USAGE, ENOTDIR);
        assert_fails(f, files_mkdir(f->files, "a/b/c", 0, true, &f->error), ERROR_EXISTS, EEXIST);
}

static FilesUpload *upload_to(Fixture *f, const char *path, int fd) {
        FilesUpload *upload = NULL;

        assert_works(f, files_upload_new(f->files, path, fd, 0, false, &upload, &f->error));
        return upload;
}

static void test_a_failed_upload_leaves_nothing(void **state) {
        Fixture *f = *state;
        FilesUpload *upload;
        int fds[2];

        assert_int_equal(mkdir("root/work/dir", 0755), 0);
        assert_fails(f, write_text(f, "dir", "x"), ERROR_USAGE, EISDIR);
        assert_int_equal(pipe(fds), 0);
        /* With the wrong end, reading fails after the new file has been created. */
        upload = upload_to(f, "dir/x", fds[1]);
        assert_int_equal(files_upload_step(upload, &f->error), -EBADF);
        files_upload_free(upload);
        fd_close(fds[0]);
        assert_works(f, files_remove(f->files, "dir", false, &f->error));
}

static void test_append(void **state) {
        Fixture *f = *state;
        uint64_t size = 0;

        assert_works(f, files_append(f->files, "log", "one\n", 4, &size, &f->error));
        assert_int_equal(size, 4);
        assert_works(f, files_append(f->files, "log", "two\n", 4, &size, &f->error));
        assert_int_equal(size, 8);
        assert_file("root/work/log", "one\ntwo\n");
        assert_int_equal(symlink("log", "root/work/link"), 0);
        assert_works(f, files_append(f->files, "link", "three\n", 6, NULL, &f->error));
        assert_file("root/work/log", "one\ntwo\nthree\n");
}

/* Each 4 MiB are one step, from the source's offset on. */
static void test_upload_in_steps(void **state) {
        Fixture *f = *state;
        _cleanup_free_ char *data = malloc(9 << 20);
        FilesUpload *upload;
        struct stat st;
        int fd;

        memset(data, 'x', 9 << 20);
        assert_int_equal(write(open("source", O_RDWR | O_CREAT, 0644), data, 9 << 20), 9 << 20);
        fd = open("source", O_RDONLY);
        assert_int_equal(lseek(fd, 4, SEEK_SET), 4);
        upload = upload_to(f, "a", fd);
        for (int i = 0; i < 3; i++) {
                assert_int_equal(files_upload_step(upload, &f->error), 0);
                assert_false(there("root/work/a"));
        }
        assert_int_equal(files_upload_step(upload, &f->error), 1);
        assert_false(there("root/work/a"));
        assert_works(f, files_upload_settle(upload, &f->error));
        assert_int_equal(files_upload_length(upload), (9 << 20) - 4);
        assert_int_equal(stat("root/work/a", &st), 0);
        assert_int_equal(st.st_size, (9 << 20) - 4);
        files_upload_free(upload);
}

static void test_upload_as_it_comes(void **state) {
        Fixture *f = *state;
        FilesUpload *upload;
        int fds[2];

        assert_int_equal(pipe(fds), 0);
        upload = upload_to(f, "a", fds[0]);
        assert_int_equal(files_upload_step(upload, &f->error), -EAGAIN);
        assert_int_equal(write(fds[1], "one ", 4), 4);
        assert_int_equal(files_upload_step(upload, &f->error), 0);
        assert_int_equal(files_upload_step(upload, &f->error), -EAGAIN);
        assert_int_equal(write(fds[1], "two", 3), 3);
        fd_close(fds[1]);
        assert_int_equal(files_upload_step(upload, &f->error), 1);
        assert_works(f, files_upload_settle(upload, &f->error));
        files_upload_free(upload);
        assert_file("root/work/a", "one two");
}

static void test_an_upload_that_is_given_up_leaves_nothing(void **state) {
        Fixture *f = *state;
        FilesUpload *upload = NULL;
        int fds[2];

        assert_int_equal(pipe(fds), 0);
        upload = upload_to(f, "a", fds[0]);
        assert_int_equal(write(fds[1], "half", 4), 4);
        assert_int_equal(files_upload_step(upload, &f->error), 0);
        files_upload_free(upload);
        assert_int_equal(rmdir("root/work"), 0);
        assert_int_equal(mkdir("root/work", 0755), 0);
        assert_fails(f, files_upload_new(f->files, "none/a", fds[1], 0, false, &upload, &f->error),
                     ERROR_MISSING, ENOENT);
        assert_int_equal(fcntl(fds[1], F_GETFD), -1);
}

static void test_holes_stay_holes(void **state) {
        Fixture *f = *state;
        _cleanup_close_ int fd = open("root/work/sparse", O_RDWR | O_CREAT, 0644);
        _cleanup_free_ char *data = NULL;
        struct stat st;
        size_t size;
        uint64_t length;
        bool eof;

        assert_int_equal(ftruncate(fd, 1 << 30), 0);
        assert_int_equal(pwrite(fd, "middle", 6, 500 << 20), 6);
        assert_works(f, files_copy(f->files, "sparse", "copy", false, false, &length, &f->error));
        assert_int_equal(stat("root/work/copy", &st), 0);
        assert_int_equal(st.st_size, 1 << 30);
        assert_true(st.st_blocks < 20000);
        assert_works(f, files_read(f->files, "copy", 500 << 20, 6, &data, &size, &eof, &f->error));
        assert_string_equal(data, "middle");
        assert_false(eof);
}

/* --- examining files --- */

static void test_stat(void **state) {
        Fixture *f = *state;
        _cleanup_(file_stat_clear) FileStat link = { 0 };
        FileStat stat;
        bool exists;

        make_file("root/work/file", "four");
        assert_int_equal(symlink("file", "root/work/link"), 0);
        assert_int_equal(symlink("absent", "root/work/dangling"), 0);
        assert_works(f, files_stat(f->files, "link", true, &stat, &f->error));
        assert_string_equal(file_type_name(stat.type), "file");
        assert_int_equal(stat.size, 4);
        assert_true(stat.modified_ms > UINT64_C(1600000000000));
        assert_null(stat.target);
        assert_works(f, files_stat(f->files, "link", false, &link, &f->error));
        assert_int_equal(link.type, FILE_LINK);
        assert_string_equal(link.target, "file");
        assert_works(f, files_stat(f->files, "/", true, &stat, &f->error));
        assert_int_equal(stat.type, FILE_DIRECTORY);
        assert_fails(f, files_stat(f->files, "dangling", true, &stat, &f->error), ERROR_MISSING,
                     ENOENT);
        assert_works(f, files_exists(f->files, "file/x", &exists, &f->error));
        assert_false(exists);
        assert_works(f, files_exists(f->files, "link", &exists, &f->error));
        assert_true(exists);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                files_test(test_a_path_is_the_sandboxs),
                files_test(test_dots_are_the_kernels),
                files_test(test_no_link_leads_out),
                files_test(test_links_in_chains_and_circles),
                files_test(test_paths_that_are_none),
                files_test(test_processes_are_not_entered),
                files_test(test_read_in_parts),
                files_test(test_read_what_is_no_file),
                files_test(test_a_lease_holds_nobody),
                files_test(test_permissions_are_kept),
                files_test(test_write_and_modes),
                files_test(test_write_through_a_link),
                files_test(test_write_with_parents),
                files_test(test_a_failed_upload_leaves_nothing),
                files_test(test_append),
                files_test(test_upload_in_steps),
                files_test(test_upload_as_it_comes),
                files_test(test_an_upload_that_is_given_up_leaves_nothing),
                files_test(test_holes_stay_holes),
                files_test(test_stat),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
