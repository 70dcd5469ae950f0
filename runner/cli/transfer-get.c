/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a file out of a session. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

#include "base/paths.h"
#include "base/sys.h"
#include "cli/progress.h"
#include "cli/shown.h"
#include "cli/transfer.h"
#include "files/copy.h"

enum { BUFFER_SIZE = 128 * 1024 };

/* --- a new file --- */

/* The new file that is being written. The signal handler removes it. */
static NewFile *volatile unfinished;

static void transfer_on_signal(int number) {
        NewFile *file = unfinished;

        if (file && file->unfinished.name[0])
                (void)unlinkat(file->place.dir_fd, file->unfinished.name, 0);
        (void)raise(number);
}

static void clean_up_on_signals(void) {
        static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
        const struct sigaction action = { .sa_handler = transfer_on_signal,
                                          .sa_flags = (int)SA_RESETHAND | SA_NODEFER };

        for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
                (void)sigaction(numbers[i], &action, NULL);
}

static mode_t get_umask(void) {
        mode_t mask = umask(0);

        (void)umask(mask);
        return mask;
}

/* Writes a new file beside the old one, and then renames it over the old one. */
static int transfer_replace(RpcClient *client, int source_fd, const char *path, unsigned mode) {
        _cleanup_(new_file_clear) NewFile file = NEW_FILE_NONE;
        uint64_t length = 0;
        int r = transfer_place(client, path, &file.place);

        if (r == 0)
                r = new_file_make(&file);
        if (r < 0)
                return r;
        unfinished = &file;
        clean_up_on_signals();
        progress_file(source_fd);
        r = files_copy_contents(source_fd, file.fd, &length);
        if (r == 0)
                r = new_file_settle(&file, mode, true);
        progress_done(r == 0, length);
        unfinished = NULL;
        return r;
}

/* --- an open file --- */

static int write_zeros(int fd, uint64_t length) {
        static const char zeros[64 * 1024];
        int r = 0;

        for (uint64_t part; r == 0 && length > 0; length -= part) {
                part = length < sizeof(zeros) ? length : sizeof(zeros);
                r = sys_write_all(fd, zeros, (size_t)part);
        }
        return r;
}

/* Returns whether a hole can be made in fd: not if others append to it (O_APPEND). */
static bool takes_holes(int fd) {
        struct stat st;
        int flags = fcntl(fd, F_GETFL);

        return flags >= 0 && !(flags & O_APPEND) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* Leaves a hole in a regular file. If the file has data there, it is overwritten by zeros. */
static int write_hole(int fd, uint64_t length) {
        const off_t at = lseek(fd, 0, SEEK_CUR);
        uint64_t old;
        struct stat st;
        off_t end;
        int r;

        if (at < 0 || fstat(fd, &st) < 0)
                return -errno;
        old = st.st_size > at ? (uint64_t)(st.st_size - at) : 0;
        r = write_zeros(fd, old < length ? old : length);
        if (r < 0 || old >= length)
                return r;
        if (__builtin_add_overflow(at, length, &end))
                return -EFBIG;
        return ftruncate(fd, end) < 0 || lseek(fd, end, SEEK_SET) < 0 ? -errno : 0;
}

/* Copies a hole at the source's current offset, if it has one. If holes were copied as zeros, a
 * file of holes, which costs a command nothing, would fill the caller's disk. */
static int copy_hole(int source_fd, int fd, uint64_t *length) {
        const off_t at = lseek(source_fd, 0, SEEK_CUR);
        off_t data = at < 0 ? -1 : lseek(source_fd, at, SEEK_DATA);
        struct stat st;
        int r;

        if (data < 0 && errno == ENXIO && at >= 0 && fstat(source_fd, &st) == 0)
                data = st.st_size;
        if (data <= at) /* no hole here, or the file system does not report holes */
                return at < 0 || lseek(source_fd, at, SEEK_SET) >= 0 ? 0 : -errno;
        r = write_hole(fd, (uint64_t)(data - at));
        if (r == 0 && lseek(source_fd, data, SEEK_SET) < 0)
                r = -errno;
        *length += (uint64_t)(data - at);
        return r;
}

/* Writes to a file that cannot be replaced: a pipe, a terminal, a device, or a file that is
 * stdout. */
static int write_to(int source_fd, int fd) {
        _cleanup_free_ char *buffer = malloc(BUFFER_SIZE);
        const bool holes = takes_holes(fd);
        int r = buffer ? 0 : -ENOMEM;
        uint64_t length = 0;
        ssize_t n = 1;

        while (r == 0 && n != 0) {
                r = holes ? copy_hole(source_fd, fd, &length) : 0;
                if (r < 0)
                        break;
                n = read(source_fd, buffer, BUFFER_SIZE);
                if (n < 0 && errno != EINTR)
                        return -errno;
                r = n > 0 ? shown_write(fd, buffer, (size_t)n) : 0;
                length += n > 0 ? (uint64_t)n : 0;
        }
        progress_done(r == 0, length);
        return r;
}

/* --- a new file or an open one --- */

static int save_to(RpcClient *client, int source_fd, int there_fd) {
        _cleanup_close_ int fd = FD_NONE;
        char real[PATH_MAX];
        struct stat st;
        int r;

        if (fstat(there_fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        if (S_ISREG(st.st_mode)) {
                /* A link of the caller stays, and its target is replaced. */
                r = path_of_fd(there_fd, real);
                return r < 0 ? r : transfer_replace(client, source_fd, real, st.st_mode);
        }
        fd = transfer_open_stream(there_fd, &st, O_WRONLY);
        return fd < 0 ? fd : write_to(source_fd, fd);
}

static int transfer_save(RpcClient *client, int source_fd, unsigned mode, const char *path) {
        _cleanup_close_ int there_fd = transfer_open_own(client, path, O_PATH);

        if (there_fd == -ENOENT)
                return transfer_replace(client, source_fd, path, mode & ~get_umask());
        return there_fd < 0 ? there_fd : save_to(client, source_fd, there_fd);
}

int transfer_get(RpcClient *client, const char *path, const char *file, Error *reterr) {
        _cleanup_close_ int fd = FD_NONE;
        int r, own_fd = transfer_own_output(file);
        unsigned mode = 0;

        r = transfer_open_file(client, path, &fd, &mode, reterr);
        if (r < 0)
                return r;
        r = own_fd >= 0 ? write_to(fd, own_fd) : transfer_save(client, fd, mode, file);
        return r < 0 ? transfer_refuse("write", file, r, reterr) : 0;
}
