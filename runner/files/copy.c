/* SPDX-License-Identifier: Apache-2.0 */
#include "files/copy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "files/walk.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

enum {
        BUFFER_SIZE = 128 * 1024,
        NAMES_TRIED = 8,
        STEP_SIZE = 64 << 20, /* Bytes between two checks whether the copy must end. */
};

/* Copies up to `left` bytes through a buffer. A left of UINT64_MAX means everything. */
static int copy_by_buffer(int source_fd, int to_fd, uint64_t left, uint64_t *length) {
        _cleanup_free_ char *buffer = malloc(BUFFER_SIZE);
        ssize_t n = 1;
        int r = buffer ? 0 : -ENOMEM;

        while (r == 0 && left > 0 && n != 0) {
                n = read(source_fd, buffer, left < BUFFER_SIZE ? (size_t)left : BUFFER_SIZE);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                r = sys_write_all(to_fd, buffer, (size_t)n);
                left -= (uint64_t)n;
                *length += (uint64_t)n;
        }
        return r;
}

/* Lets the kernel copy, or share the blocks, if both sides can (copy_file_range(2)). Otherwise
 * copies through the buffer. */
static int copy_extent(int source_fd, int to_fd, uint64_t left, uint64_t *length) {
        while (left > 0) {
                size_t part = left < 1U << 30 ? (size_t)left : 1U << 30;
                ssize_t n = copy_file_range(source_fd, NULL, to_fd, NULL, part, 0);

                if (n < 0 && errno == EINTR)
                        continue;
                /* Some file systems report the end although they have copied nothing. So the copy
                 * continues by the buffer, which finds the real end. */
                if (n <= 0)
                        return n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO)
                                       ? -errno
                                       : copy_by_buffer(source_fd, to_fd, left, length);
                left -= (uint64_t)n;
                *length += (uint64_t)n;
        }
        return 0;
}

int files_copying_begin(int source_fd, int to_fd, FilesCopying *ret) {
        struct stat st;
        off_t at;

        if (fstat(source_fd, &st) < 0)
                return -errno;
        at = S_ISREG(st.st_mode) ? lseek(source_fd, 0, SEEK_CUR) : -1;
        *ret = (FilesCopying){ .source_fd = source_fd,
                               .to_fd = to_fd,
                               .regular = at >= 0,
                               .start = at,
                               .at = at,
                               .size = st.st_size };
        return 0;
}

/* Makes a hole of the rest behind the last data. */
static int copy_copying_end(FilesCopying *copying) {
        off_t length = copying->size > copying->start ? copying->size - copying->start : 0;

        copying->at = copying->size;
        copying->length = (uint64_t)length;
        return length > 0 && ftruncate(copying->to_fd, length) < 0 ? -errno : 1;
}

/* Copies one extent of data at a time; SEEK_DATA fails with ENXIO behind the last. A process that
 * shares the source's offset may have moved it since the last step. */
int files_copying_step(FilesCopying *copying, uint64_t most) {
        const int source_fd = copying->source_fd;
        off_t data = 0, hole;
        uint64_t length = 0, part;
        int r;

        if (copying->at < copying->size)
                data = lseek(source_fd, copying->at, SEEK_DATA);
        if (data < 0 && errno != ENXIO)
                return -errno;
        if (copying->at >= copying->size || data < 0 || data >= copying->size)
                return copy_copying_end(copying);
        hole = lseek(source_fd, data, SEEK_HOLE);
        if (hole < 0 || hole > copying->size)
                hole = copying->size;
        part = (uint64_t)(hole - data) < most ? (uint64_t)(hole - data) : most;
        if (lseek(source_fd, data, SEEK_SET) < 0 ||
            lseek(copying->to_fd, data - copying->start, SEEK_SET) < 0)
                return -errno;
        r = copy_extent(source_fd, copying->to_fd, part, &length);
        copying->at = data + (off_t)part;
        copying->length = (uint64_t)(copying->at - copying->start);
        return r;
}

int files_copy_contents(int source_fd, int to_fd, uint64_t *ret_length) {
        FilesCopying copying = { 0 };
        int r = files_copying_begin(source_fd, to_fd, &copying);

        if (r == 0 && !copying.regular)
                r = copy_by_buffer(source_fd, to_fd, UINT64_MAX, &copying.length);
        while (r == 0 && copying.regular)
                r = walk_stopped() ? -ECANCELED : files_copying_step(&copying, STEP_SIZE);
        if (r < 0)
                return r;
        *ret_length = copying.length;
        return 0;
}

/* --- new files --- */

static int make_named(NewFile *file) {
        for (int i = 0; i < NAMES_TRIED; i++) {
                int r;

                unfinished_begin(file->notes, file->place.dir_fd, NULL, &file->unfinished);
                file->fd = openat(file->place.dir_fd, file->unfinished.name,
                                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
                if (file->fd >= 0) {
                        unfinished_made(&file->unfinished, file->fd);
                        return 0;
                }
                r = -errno;
                unfinished_end(&file->unfinished);
                if (r != -EEXIST)
                        return r;
        }
        return -EEXIST;
}

/* A nameless file disappears if its maker is killed. Some file systems do not support that (NFS,
 * FUSE, overlayfs before Linux 6.3), and report it in different ways. */
int new_file_make(NewFile *file) {
        file->fd = openat(file->place.dir_fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
        return file->fd >= 0 ? 0 : make_named(file);
}

/* Gives the file a temporary name, unless it has one. */
static int name_file(NewFile *file) {
        Unfinished *unfinished = &file->unfinished;
        char path[32];
        int r;

        if (unfinished->name[0])
                return 0;
        unfinished_begin(file->notes, file->place.dir_fd, NULL, unfinished);
        unfinished_made(unfinished, file->fd);
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
        if (linkat(AT_FDCWD, path, file->place.dir_fd, unfinished->name, AT_SYMLINK_FOLLOW) < 0) {
                r = -errno;
                unfinished_end(unfinished);
                return r;
        }
        return 0;
}

/* Stores the permission bits of the file to replace, or 0644 if none exists. */
static int replaced_mode(const FilesPlace *place, unsigned *ret) {
        _cleanup_close_ int fd = files_child(place->dir_fd, place->name);
        struct stat st;

        if (files_is_made_up(place->dir_fd))
                return -EOPNOTSUPP;
        if (fd == -ENOENT) {
                *ret = 0644;
                return 0;
        }
        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        *ret = st.st_mode & 0777;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        /* A symlink has appeared since symlinks were followed. */
        if (S_ISLNK(st.st_mode))
                return -EAGAIN;
        return S_ISREG(st.st_mode) ? 0 : -EOPNOTSUPP;
}

int new_file_begin(const Files *files, const char *path, unsigned *mode, bool make_parents,
                   NewFile *ret) {
        unsigned old = 0;
        int r;

        if (path[0] && path[strlen(path) - 1] == '/')
                return -EISDIR;
        ret->notes = &files->notes;
        r = files_may_make(files, path);
        if (r == 0)
                r = files_place_made(files, path, true, make_parents, &ret->place);
        if (r == 0)
                r = replaced_mode(&ret->place, &old);
        if (r < 0)
                return r;
        if (*mode == 0)
                *mode = old;
        return new_file_make(ret);
}

int files_rename(const FilesPlace *from, const FilesPlace *to, bool replace) {
        struct stat st;
        unsigned flags = replace ? 0 : RENAME_NOREPLACE;

        if (syscall(SYS_renameat2, from->dir_fd, from->name, to->dir_fd, to->name, flags) == 0)
                return 0;
        if (errno != EINVAL || replace)
                return -errno;
        /* NFS and FUSE support no flags. EINVAL also means a move of a directory into itself; then
         * this call fails with it again. */
        if (fstatat(to->dir_fd, to->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                return -EEXIST;
        return renameat(from->dir_fd, from->name, to->dir_fd, to->name) < 0 ? -errno : 0;
}

int new_file_settle(NewFile *file, unsigned mode, bool replace) {
        FilesPlace from = { .dir_fd = file->place.dir_fd };
        _cleanup_close_ int there = FD_NONE;
        int r;

        /* Set-id bits are removed: no file may get them through the keeper. */
        if (fchmod(file->fd, mode & 0777) < 0 || fsync(file->fd) < 0)
                return -errno;
        there = files_child(file->place.dir_fd, file->place.name);
        if (there < 0 && there != -ENOENT)
                return there;
        r = name_file(file);
        if (r < 0)
                return r;
        (void)strcpy(from.name, file->unfinished.name);
        r = files_rename(&from, &file->place, replace);
        if (r == 0)
                unfinished_end(&file->unfinished);
        return r;
}

void new_file_clear(NewFile *file) {
        if (file->unfinished.name[0]) {
                (void)unlinkat(file->place.dir_fd, file->unfinished.name, 0);
                unfinished_end(&file->unfinished);
        }
        file->fd = fd_close(file->fd);
        files_place_clear(&file->place);
}
