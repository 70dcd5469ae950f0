/* SPDX-License-Identifier: Apache-2.0 */
#include "session/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "files/files.h"

enum {
        DIGITS = 16,
        NAMES_TRIED = 8,
};

int leftover_lock(const char *path) {
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        /* Where there are no locks nobody sweeps. */
        while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
                ;
        return fd;
}

bool leftover_is(int fd, const char *path) {
        struct stat st, named;

        return fstat(fd, &st) == 0 && lstat(path, &named) == 0 && st.st_dev == named.st_dev &&
               st.st_ino == named.st_ino;
}

int leftover_make(const char *path, const char *prefix, unsigned mode, char *ret_path,
                  int *ret_fd) {
        for (int i = 0; i < NAMES_TRIED; i++) {
                uint64_t random = 0;
                int fd;

                (void)!getrandom(&random, sizeof(random), 0);
                if (snprintf(ret_path, PATH_MAX, "%s/%s%016llx", path, prefix,
                             (unsigned long long)random) >= PATH_MAX)
                        return -ENAMETOOLONG;
                if (mkdir(ret_path, mode) < 0) {
                        if (errno == EEXIST)
                                continue;
                        return -errno;
                }
                fd = leftover_lock(ret_path);
                /* Between mkdir(2) and flock(2) somebody may have swept it. */
                if (fd >= 0 && leftover_is(fd, ret_path)) {
                        *ret_fd = fd;
                        return 0;
                }
                (void)fd_close(fd);
        }
        return -EEXIST;
}

/* --- the sweep --- */

static bool is_leftover(const char *name, const char *prefix) {
        const size_t length = strlen(prefix);

        return str_starts(name, prefix) && strlen(name) == length + DIGITS &&
               strspn(name + length, "0123456789abcdef") == DIGITS;
}

static void leftovers_sweep_one(int dir_fd, const char *name) {
        _cleanup_close_ int fd = openat(dir_fd, name,
                                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
                (void)files_remove_tree(dir_fd, name);
}

void leftovers_sweep(const char *path, const char *prefix) {
        DIR *dir = opendir(path);
        struct dirent *entry;

        while (dir && (entry = readdir(dir)))
                if (is_leftover(entry->d_name, prefix))
                        leftovers_sweep_one(dirfd(dir), entry->d_name);
        if (dir)
                (void)closedir(dir);
}
