/* SPDX-License-Identifier: Apache-2.0 */
/* Reads stderr on its way to the caller's pipe or socket.
 *
 * Theory of operation. The last messages of a failed command tell which paths were refused to it
 * (keeper/refused.c). Many callers read stderr through a pipe, often the same as stdout (2>&1). The
 * command then gets a pipe of its own. tee(2) copies the bytes into a pipe of the keeper, which
 * reads them there, and splice(2) moves them on to the caller. So the keeper never has bytes that
 * the caller has no room for: they stay in the command's pipe.
 *
 * If stderr is the same pipe as stdout, one pipe stands for both, which keeps the order of the
 * command's writes. What was overheard then contains stdout, too. */
#include "process/process-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

int overhear_init(Processes *all, Error *reterr) {
        return pipe2(all->copy_fds, O_CLOEXEC | O_NONBLOCK) < 0
                       ? error_set(reterr, ERROR_SETUP, errno, "cannot make a pipe")
                       : 0;
}

static bool overhear_is_same(int fd, int other_fd) {
        struct stat st, other;

        return fstat(fd, &st) == 0 && fstat(other_fd, &other) == 0 && st.st_dev == other.st_dev &&
               st.st_ino == other.st_ino;
}

int overhear_choose(Process *process, ProcessSpec *spec) {
        const bool both = overhear_is_same(spec->fds[1], spec->fds[2]);

        /* With different flags, the two would get a pipe each, and lose their order. */
        if (!tail_can_pass(spec->fds[2], spec->fds[0]) ||
            (both && fcntl(spec->fds[1], F_GETFL) != fcntl(spec->fds[2], F_GETFL)))
                return 0;
        process->overheard = calloc(1, sizeof(*process->overheard));
        if (!process->overheard)
                return -ENOMEM;
        process->overhears = both ? 3 : 2;
        spec->detours |= process->overhears << 1;
        return 0;
}

/* Reads size bytes that are there. The command may have switched its pipe to packets (O_DIRECT),
 * and a read then returns only one. */
static void overhear_read(int fd, char *buf, size_t size) {
        for (ssize_t n = 1; n > 0 && size > 0; size -= n > 0 ? (size_t)n : 0, buf += n)
                n = read(fd, buf, size);
}

/* Sends to a socket what it takes, and then removes that from the command's pipe. */
static ssize_t overhear_send(const Process *process, unsigned i, char *buf, size_t length) {
        ssize_t n = send(process->sinks[i], buf, length, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0)
                overhear_read(process->streams[i], buf, (size_t)n);
        return n;
}

/* Copies what is in the command's pipe to buf, and leaves it there. Returns the number of bytes, or
 * 0 at the end of the stream, or a negative errno. */
static ssize_t overhear_copy(const Process *process, unsigned i, char buf[CAPTURE_CHUNK_MAX]) {
        const int *copy_fds = process->all->copy_fds;
        ssize_t n = tee(process->streams[i], copy_fds[1], CAPTURE_CHUNK_MAX, SPLICE_F_NONBLOCK);

        if (n > 0)
                overhear_read(copy_fds[0], buf, (size_t)n);
        return n < 0 ? -errno : n;
}

void process_overheard(const Process *process, Tail *ret) {
        _uninitialized_ char buf[CAPTURE_CHUNK_MAX];

        *ret = *process->overheard;
        for (unsigned i = 0; i < CAPTURE_STREAMS; i++)
                if (process->overhears & 1U << i && process->streams[i] >= 0) {
                        const ssize_t n = overhear_copy(process, i, buf);

                        tail_add(ret, buf, n > 0 ? (size_t)n : 0);
                }
}

bool overhear_pass(Process *process, unsigned i) {
        _uninitialized_ char buf[CAPTURE_CHUNK_MAX];
        ssize_t n = overhear_copy(process, i, buf);
        struct stat st;

        if (n <= 0)
                return n == -EAGAIN || n == -EINTR;
        if (fstat(process->sinks[i], &st) < 0)
                return false;
        n = S_ISSOCK(st.st_mode) ? overhear_send(process, i, buf, (size_t)n)
                                 : splice(process->streams[i], NULL, process->sinks[i], NULL,
                                          (size_t)n, SPLICE_F_NONBLOCK);
        if (n > 0)
                tail_add(process->overheard, buf, (size_t)n);
        if (n >= 0 || errno == EINTR)
                return n != 0;
        if (errno == EAGAIN)
                return detour_wait(process, i);
        detour_note_error(process, (int)i + 1, errno);
        return false;
}
