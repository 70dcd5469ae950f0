/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/links-files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "links/link.h"

/* Opens the directory of a path, and finds the name in it. */
static int links_place(int dir_fd, const char *path, FilesPlace *ret) {
        const uint64_t resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
        const char *slash = strrchr(path, '/');
        char directory[LINK_PATH_MAX + 1] = ".";
        int fd;

        if (dir_fd < 0)
                return -ENOENT;
        if (strlen(slash ? slash + 1 : path) > NAME_MAX)
                return -ENAMETOOLONG;
        if (slash)
                (void)snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path), path);
        fd = sys_openat2(dir_fd, directory, O_PATH | O_DIRECTORY | O_CLOEXEC, 0, resolve);
        if (fd < 0)
                return -errno;
        (void)strcpy(ret->name, slash ? slash + 1 : path);
        ret->dir_fd = fd;
        return 0;
}

int links_open_file(int dir_fd, const char *path, int *ret_fd, uint64_t *ret_size) {
        _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
        _cleanup_close_ int path_fd = FD_NONE, fd = FD_NONE;
        struct stat st;
        int r = links_place(dir_fd, path, &place);

        if (r < 0)
                return r;
        path_fd = files_child_across(place.dir_fd, place.name);
        if (path_fd < 0)
                return path_fd;
        if (fstat(path_fd, &st) < 0)
                return -errno;
        if (S_ISLNK(st.st_mode))
                return -ELOOP;
        fd = files_reopen(path_fd, O_RDONLY);
        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        *ret_size = (uint64_t)st.st_size;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int links_upload_place(Files *files, int dir_fd, const char *path, unsigned *ret_mode,
                       FilesPlace *ret) {
        _cleanup_close_ int fd = FD_NONE;
        char full[sizeof(LINKS_DIRECTORY) + LINK_PATH_MAX + 1];
        struct stat st;
        int r = links_place(dir_fd, path, ret);

        *ret_mode = 0644;
        (void)snprintf(full, sizeof(full), LINKS_DIRECTORY "/%s", path);
        if (r == 0)
                r = files_may_make(files, full);
        if (r < 0)
                return r;
        if (files_is_made_up(ret->dir_fd))
                return -EOPNOTSUPP;
        fd = files_child(ret->dir_fd, ret->name);
        if (fd == -ENOENT)
                return 0;
        if (fd < 0 || fstat(fd, &st) < 0)
                return fd < 0 ? fd : -errno;
        if (S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode))
                return S_ISDIR(st.st_mode) ? -EISDIR : -ELOOP;
        *ret_mode = st.st_mode & 0777;
        return S_ISREG(st.st_mode) ? 0 : -EOPNOTSUPP;
}
