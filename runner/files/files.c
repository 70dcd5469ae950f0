/* SPDX-License-Identifier: Apache-2.0 */
#include "files/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "files/copy.h"
#include "files/path.h"

const char *file_type_name(FileType type) {
        static const char *const names[] = {
                [FILE_REGULAR] = "file",
                [FILE_DIRECTORY] = "directory",
                [FILE_LINK] = "link",
                [FILE_OTHER] = "other",
        };
        static_assert(ELEMENTSOF(names) == FILE_TYPE_MAX, "every type has a name");

        return names[type];
}

void file_stat_clear(FileStat *stat) {
        free(stat->target);
        *stat = (FileStat){ 0 };
}

/* --- read --- */

int files_open_read(Files *files, const char *path, int *ret_fd, Error *reterr) {
        _cleanup_close_ int path_fd = files_open(files, path, O_PATH);
        int fd = path_fd < 0 ? path_fd : files_reopen(path_fd, O_RDONLY);

        if (fd < 0)
                return files_fail(files, fd, "read", path, reterr);
        *ret_fd = fd;
        return 0;
}

/* Reads until the buffer is full or the file ends. */
static ssize_t read_at(int fd, char *buffer, size_t length, uint64_t offset) {
        size_t done = 0;

        while (done < length) {
                ssize_t n = pread(fd, buffer + done, length - done, (off_t)(offset + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                done += (size_t)n;
        }
        return (ssize_t)done;
}

/* Returns how many of `length` bytes exist behind `offset` in a file of that size, so that no more
 * memory is allocated. */
static size_t files_readable(off_t size, uint64_t offset, uint64_t length) {
        uint64_t left = offset < (uint64_t)size ? (uint64_t)size - offset : 0;

        if (length > FILES_READ_MAX)
                length = FILES_READ_MAX;
        return (size_t)(left < length ? left : length);
}

int files_read(Files *files, const char *path, uint64_t offset, uint64_t length, char **ret,
               size_t *ret_length, bool *ret_eof, Error *reterr) {
        _cleanup_close_ int fd = FD_NONE;
        _cleanup_free_ char *data = NULL;
        struct stat st;
        ssize_t n, more = 0;
        size_t size;
        char byte;
        int r;

        r = files_open_read(files, path, &fd, reterr);
        if (r < 0)
                return r;
        if (fstat(fd, &st) < 0)
                return files_fail(files, -errno, "read", path, reterr);
        size = files_readable(st.st_size, offset, length);
        data = malloc(size + 1);
        if (!data)
                return error_oom(reterr);
        n = read_at(fd, data, size, offset);
        if (n == (ssize_t)size && offset < (uint64_t)st.st_size)
                more = read_at(fd, &byte, 1, offset + size);
        if (n < 0 || more < 0)
                return files_fail(files, (int)(n < 0 ? n : more), "read", path, reterr);
        data[n] = '\0';
        *ret_length = (size_t)n;
        *ret_eof = more == 0;
        *ret = TAKE_PTR(data);
        return 0;
}

/* --- write --- */

int files_write(Files *files, const char *path, const void *data, size_t length, unsigned mode,
                bool make_parents, Error *reterr) {
        _cleanup_(new_file_clear) NewFile file = NEW_FILE_NONE;
        int r = new_file_begin(files, path, &mode, make_parents, &file);

        if (r == 0)
                r = sys_write_all(file.fd, data, length);
        if (r == 0)
                r = new_file_settle(&file, mode, true);
        return r < 0 ? files_fail_made(files, r, "write", path, make_parents, reterr) : 0;
}

int files_append(Files *files, const char *path, const void *data, size_t length,
                 uint64_t *ret_size, Error *reterr) {
        _cleanup_close_ int path_fd = files_open(files, path, O_PATH), fd = FD_NONE;
        struct stat st = { .st_size = (off_t)length };
        int r;

        if (path_fd == -ENOENT) {
                r = files_write(files, path, data, length, 0, false, reterr);
        } else {
                fd = path_fd < 0 ? path_fd : files_reopen(path_fd, O_WRONLY | O_APPEND);
                r = fd < 0 ? fd : sys_write_all(fd, data, length);
                if (r == 0 && fstat(fd, &st) < 0)
                        r = -errno;
                if (r < 0)
                        r = files_fail(files, r, "append to", path, reterr);
        }
        if (r == 0 && ret_size)
                *ret_size = (uint64_t)st.st_size;
        return r;
}

/* --- status --- */

int files_stat(Files *files, const char *path, bool follow, FileStat *ret, Error *reterr) {
        _cleanup_close_ int fd = files_open(files, path, follow ? O_PATH : O_PATH | O_NOFOLLOW);
        int r = fd < 0 ? fd : files_stat_fd(fd, ret);

        return r < 0 ? files_fail(files, r, "examine", path, reterr) : 0;
}

int files_exists(Files *files, const char *path, bool *ret, Error *reterr) {
        _cleanup_close_ int fd = files_open(files, path, O_PATH);

        if (fd < 0 && fd != -ENOENT && fd != -ENOTDIR && fd != -ENAMETOOLONG)
                return files_fail(files, fd, "examine", path, reterr);
        *ret = fd >= 0;
        return 0;
}

static bool files_has_directory(const Files *files, const char *path) {
        _cleanup_close_ int fd = files_open(files, path, O_PATH | O_DIRECTORY);

        return fd >= 0;
}

/* With make_parents, the directory may exist already, as with mkdir -p. */
static int make_dir(Files *files, const char *path, unsigned mode, bool make_parents) {
        _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
        int r;

        if (make_parents && files_has_directory(files, path))
                return 0;
        r = files_may_make(files, path);
        if (r == 0)
                r = files_place_made(files, path, false, make_parents, &place);
        if (r < 0)
                return r;
        if (mkdirat(place.dir_fd, place.name, mode ? mode & 0777 : 0755) == 0)
                return 0;
        r = -errno;
        return r == -EEXIST && make_parents && files_has_directory(files, path) ? 0 : r;
}

int files_mkdir(Files *files, const char *path, unsigned mode, bool make_parents, Error *reterr) {
        int r = make_dir(files, path, mode, make_parents);

        return r < 0 ? files_fail_made(files, r, "make the directory", path, make_parents, reterr)
                     : 0;
}

int files_link(Files *files, const char *path, const char *target, Error *reterr) {
        _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
        int r = files_may_make(files, path);

        if (r == 0)
                r = files_place_made(files, path, false, false, &place);
        if (r == 0 && symlinkat(target, place.dir_fd, place.name) < 0)
                r = -errno;
        return r < 0 ? files_fail(files, r, "make the link", path, reterr) : 0;
}
