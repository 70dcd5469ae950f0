/* SPDX-License-Identifier: Apache-2.0 */
#include "files-fixture.h"

#include <dirent.h>

#include "directory-fixture.h"

static const char secret[] = "what is outside stays outside\n";

void make_file(const char *path, const char *text) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

void assert_file(const char *path, const char *text) {
        _cleanup_close_ int fd = open(path, O_RDONLY);
        char buffer[4096];
        ssize_t n;

        if (fd < 0)
                fail_msg("%s is not there", path);
        n = read(fd, buffer, sizeof(buffer) - 1);
        assert_true(n >= 0);
        buffer[n] = '\0';
        assert_string_equal(buffer, text);
}

bool there(const char *path) {
        struct stat st;

        return lstat(path, &st) == 0;
}

const char *read_text(Fixture *f, const char *path) {
        static char text[4096];
        _cleanup_free_ char *data = NULL;
        size_t length;
        bool eof;

        if (files_read(f->files, path, 0, sizeof(text) - 1, &data, &length, &eof, &f->error) < 0)
                fail_msg("%s: errno %d", f->error.text, f->error.errnum);
        memcpy(text, data, length + 1);
        return text;
}

void assert_outside_untouched(void) {
        struct stat st;
        size_t count = 0;
        DIR *dir = opendir("outside");

        assert_non_null(dir);
        for (const struct dirent *entry; (entry = readdir(dir));)
                count++;
        (void)closedir(dir);
        assert_int_equal(count, 4);
        assert_file("outside/secret", secret);
        assert_file("outside/below/secret", secret);
        assert_int_equal(stat("outside/secret", &st), 0);
        assert_int_equal(st.st_mode & 07777, 0640);
        assert_int_equal(st.st_mtime, 1000000000);
        assert_int_equal(stat("outside", &st), 0);
        assert_int_equal(st.st_mode & 07777, 0750);
}

static int make_outside(void) {
        const struct timespec times[] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };

        if (mkdir("outside", 0750) < 0 || mkdir("outside/below", 0755) < 0)
                return -1;
        make_file("outside/secret", secret);
        make_file("outside/below/secret", secret);
        return chmod("outside", 0750) < 0 || chmod("outside/secret", 0640) < 0
                       ? -1
                       : utimensat(AT_FDCWD, "outside/secret", times, 0);
}

int fixture_setup(void **state) {
        Fixture *f = calloc(1, sizeof(*f));

        if (!f)
                return -1;
        *state = f;
        (void)strcpy(f->path, "/tmp/holt-files-XXXXXX");
        if (!mkdtemp(f->path) || chdir(f->path) < 0 || mkdir("root", 0755) < 0 ||
            mkdir("root/work", 0755) < 0 || make_outside() < 0)
                return -1;
        f->root_fd = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return files_new(f->root_fd, "/work", &f->files, &f->error);
}

int fixture_teardown(void **state) {
        Fixture *f = *state;
        int r;

        assert_outside_untouched();
        r = remove_directory(f->path);
        files_free(f->files);
        fd_close(f->root_fd);
        free(f);
        return r;
}

void become_user(Fixture *f) {
        if (geteuid() != 0)
                return;
        assert_int_equal(chown(f->path, 61234, 61234), 0);
        assert_int_equal(chown("root", 61234, 61234), 0);
        assert_int_equal(chown("root/work", 61234, 61234), 0);
        assert_int_equal(setegid(61234), 0);
        assert_int_equal(seteuid(61234), 0);
}

void become_root(void) {
        if (getuid() != 0)
                return;
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(setegid(0), 0);
}
