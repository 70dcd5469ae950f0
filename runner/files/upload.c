/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a file of any size from a client's fd, in steps. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/uio.h>

#include "base/sys.h"
#include "files/copy.h"
#include "files/files.h"

enum {
        STEP = 4 << 20,           /* Bytes copied at once. */
        BUFFER_SIZE = 128 * 1024, /* Bytes of one read from a pipe or socket. */
        WINDOW = 8 << 20,         /* Bytes on their way to the disk. */
};

struct FilesUpload {
        const Files *files; /* Borrowed. */
        NewFile file;
        FilesCopying copying;
        int source_fd; /* Owned. */
        unsigned mode;
        uint64_t flushed; /* Bytes whose flush has begun. */
        char *path;
};

int files_upload_new(Files *files, const char *path, int source_fd, unsigned mode,
                     bool make_parents, FilesUpload **ret, Error *reterr) {
        FilesUpload *upload = calloc(1, sizeof(*upload));
        int r = upload ? 0 : -ENOMEM;

        if (r == 0) {
                upload->files = files;
                upload->file = NEW_FILE_NONE;
                upload->source_fd = TAKE_FD(source_fd);
                upload->mode = mode;
                upload->path = strdup(path);
                r = upload->path ? new_file_begin(files, path, &upload->mode, make_parents,
                                                  &upload->file)
                                 : -ENOMEM;
        }
        if (r == 0)
                r = files_copying_begin(upload->source_fd, upload->file.fd, &upload->copying);
        (void)fd_close(source_fd);
        if (r < 0) {
                files_upload_free(upload);
                return files_fail_made(files, r, "write", path, make_parents, reterr);
        }
        *ret = upload;
        return 0;
}

/* Reading some files blocks, so this function first asks whether they have data. Only the client
 * itself could take the data in between. */
static ssize_t read_now(int fd, char *buffer, size_t size) {
        const struct iovec iov = { buffer, size };
        struct pollfd p = { .fd = fd, .events = POLLIN };
        ssize_t n = preadv2(fd, &iov, 1, -1, RWF_NOWAIT);

        if (n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
                if (poll(&p, 1, 0) == 0)
                        return -EAGAIN;
                n = read(fd, buffer, size);
        }
        return n < 0 ? -errno : n;
}

/* Returns 1 at the end of the data. */
static int stream_step(FilesUpload *upload) {
        _cleanup_free_ char *buffer = malloc(BUFFER_SIZE);
        uint64_t left = STEP;
        int r = buffer ? 0 : -ENOMEM;

        while (r == 0 && left > 0) {
                ssize_t n = read_now(upload->source_fd, buffer,
                                     left < BUFFER_SIZE ? (size_t)left : BUFFER_SIZE);

                if (n == -EINTR)
                        continue;
                if (n == -EAGAIN && left < STEP)
                        return 0;
                if (n <= 0)
                        return n < 0 ? (int)n : 1;
                r = sys_write_all(upload->file.fd, buffer, (size_t)n);
                left -= (uint64_t)n;
                upload->copying.length += (uint64_t)n;
        }
        return r;
}

/* Flushing a gigabyte at the end would hold everybody up for as long as the disk needs. So copied
 * data is sent to the disk at once, and waited for one window later. Errors are left to the final
 * flush. */
static void flush_some(FilesUpload *upload) {
        const uint64_t length = upload->copying.length, flushed = upload->flushed;
        const int fd = upload->file.fd;

        if (length < flushed + WINDOW)
                return;
        (void)sync_file_range(fd, (off_t)flushed, (off_t)(length - flushed), SYNC_FILE_RANGE_WRITE);
        if (flushed >= WINDOW)
                (void)sync_file_range(fd, (off_t)(flushed - WINDOW), WINDOW,
                                      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                              SYNC_FILE_RANGE_WAIT_AFTER);
        upload->flushed = length;
}

int files_upload_step(FilesUpload *upload, Error *reterr) {
        int r = upload->copying.regular ? files_copying_step(&upload->copying, STEP)
                                        : stream_step(upload);

        if (r == 0)
                flush_some(upload);
        return r < 0 && r != -EAGAIN ? files_fail(upload->files, r, "write", upload->path, reterr)
                                     : r;
}

int files_upload_settle(FilesUpload *upload, Error *reterr) {
        int r = new_file_settle(&upload->file, upload->mode, true);

        return r < 0 ? files_fail(upload->files, r, "write", upload->path, reterr) : 0;
}

bool files_upload_is_regular(const FilesUpload *upload) {
        return upload->copying.regular;
}

uint64_t files_upload_length(const FilesUpload *upload) {
        return upload->copying.length;
}

FilesUpload *files_upload_free(FilesUpload *upload) {
        if (!upload)
                return NULL;
        new_file_clear(&upload->file);
        (void)fd_close(upload->source_fd);
        free(upload->path);
        free(upload);
        return NULL;
}
