/* SPDX-License-Identifier: Apache-2.0 */
/* Reads stderr on its way to the caller's pipe or socket.
 *
 * Theory of operation. The last messages of a failed command tell which paths were refused to it
 * (keeper/refused.c). Many callers read stderr through a pipe, often the same as stdout (2>&1). The
 * command then gets a pipe of its own. tee(2) copies the bytes into a pipe of the keeper, which
 * reads them there and sends them to the caller. Only what the caller has taken is removed from the
 * command's pipe. So the keeper never has bytes that the caller has no room for.
 *
 * Neither the caller nor the command should notice this pipe. Small writes are joined, because a
 * pipe has room for only 16 separate ones. If the reader leaves, the command learns of it. The
 * process settles only when the caller's pipe has taken the output up to the command's end.
 *
 * If stderr is the same pipe as stdout, one pipe stands for both, which keeps the order of the
 * command's writes. What was overheard then contains stdout, too. */
#include "process/process-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "streams/relay.h"

/* Bytes from which they are moved instead of copied. */
enum { OVERHEAR_JOINED_MAX = 8 * 1024 };

int overhear_init(Processes *all, Error *reterr) {
        return pipe2(all->copy_fds, O_CLOEXEC | O_NONBLOCK) < 0
                       ? error_set(reterr, ERROR_SETUP, errno, "cannot make a pipe")
                       : 0;
}

/* --- what is overheard --- */

static bool overhear_is_same(int fd, int other_fd) {
        struct stat st, other;

        return fstat(fd, &st) == 0 && fstat(other_fd, &other) == 0 && st.st_dev == other.st_dev &&
               st.st_ino == other.st_ino;
}

int overhear_choose(Process *process, ProcessSpec *spec) {
        const bool both = overhear_is_same(spec->fds[1], spec->fds[2]);

        /* With different flags, the two would get a pipe each, and lose their order. The output of
         * a terminal inside is read in place of a stream that the caller has not given. */
        if (!tail_can_pass(spec->fds[2], spec->fds[0]) ||
            (both && fcntl(spec->fds[1], F_GETFL) != fcntl(spec->fds[2], F_GETFL)) ||
            (spec->terminal && !spec->give_master))
                return 0;
        process->overheard = calloc(1, sizeof(*process->overheard));
        if (!process->overheard)
                return -ENOMEM;
        process->overhears = both ? 3 : 2;
        for (unsigned i = 0; i < CAPTURE_STREAMS; i++)
                if (!(spec->detours & 2U << i))
                        process->plain |= process->overhears & 1U << i;
        spec->detours |= process->overhears << 1;
        return 0;
}

/* --- copying --- */

/* Reads size bytes that are there. The command may have switched its pipe to packets (O_DIRECT),
 * and a read then returns only one. */
static void overhear_read(int fd, char *buf, size_t size) {
        for (ssize_t n = 1; n > 0 && size > 0; size -= n > 0 ? (size_t)n : 0, buf += n)
                n = read(fd, buf, size);
}

/* Removes size bytes from the command's pipe. Reading them could lose the rest of a packet. */
static void overhear_remove(const Process *process, unsigned i, char *buf, size_t size) {
        const int *copy_fds = process->all->copy_fds;

        while (size > 0) {
                const ssize_t n = splice(process->streams[i], NULL, copy_fds[1], NULL, size,
                                         SPLICE_F_NONBLOCK);

                if (n <= 0)
                        return;
                overhear_read(copy_fds[0], buf, (size_t)n);
                size -= (size_t)n;
        }
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

/* Writes to a pipe without waiting for room. O_NONBLOCK would change the pipe for the caller, too.
 * Before Linux 6.4, RWF_NOWAIT does not work for pipes. Such a kernel has room for PIPE_BUF bytes
 * if poll(2) says so, unless another process takes it; then the wait is short. */
static ssize_t overhear_write(int fd, char *buf, size_t length) {
        const struct iovec part = { .iov_base = buf, .iov_len = pipe_part(buf, length) };
        struct pollfd room = { .fd = fd, .events = POLLOUT };
        ssize_t n = pwritev2(fd, &part, 1, -1, RWF_NOWAIT);

        if (n >= 0 || errno != EOPNOTSUPP)
                return n;
        if (poll(&room, 1, 0) > 0)
                return patience_write(fd, buf, part.iov_len);
        errno = EAGAIN;
        return -1;
}

/* Sends the copied bytes on, as far as the caller has room for them, and removes these from the
 * command's pipe. Returns their number, or -1 with errno. */
static ssize_t overhear_send(Process *process, unsigned i, char *buf, size_t length) {
        const int sink = process->sinks[i];
        struct stat st;
        bool moves;
        ssize_t n;

        if (fstat(sink, &st) < 0)
                return -1;
        /* Few bytes may be a small write. Many bytes are moved faster without a copy; the command's
         * pipe has joined them. */
        moves = S_ISFIFO(st.st_mode) &&
                (length >= OVERHEAR_JOINED_MAX || !(process->plain & 1U << i));
        if (moves)
                n = splice(process->streams[i], NULL, sink, NULL, length, SPLICE_F_NONBLOCK);
        else if (S_ISFIFO(st.st_mode))
                n = overhear_write(sink, buf, length);
        else
                n = send(sink, buf, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0)
                tail_add(process->overheard, buf, (size_t)n);
        if (n > 0 && !moves)
                overhear_remove(process, i, buf, (size_t)n);
        return n;
}

bool overhear_pass(Process *process, unsigned i) {
        _uninitialized_ char buf[CAPTURE_CHUNK_MAX];
        ssize_t n = overhear_copy(process, i, buf);

        if (n == -EAGAIN)
                overhear_pay_all(process, i);
        if (n <= 0)
                return n == -EAGAIN || n == -EINTR;
        n = overhear_send(process, i, buf, (size_t)n);
        if (n > 0)
                overhear_pay(process, i, (size_t)n);
        if (n >= 0 || errno == EINTR)
                return n != 0;
        if (errno == EAGAIN)
                return detour_wait(process, i);
        detour_note_error(process, (int)i + 1, errno);
        return false;
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

/* --- readers --- */

/* A named pipe may get another reader. */
bool overhear_minds_reader(const Process *process, unsigned i) {
        return process->plain & 1U << i && process->sinks[i] >= 0 && process->streams[i] >= 0;
}

bool overhear_is_left(const Process *process, unsigned i, uint32_t events) {
        return overhear_minds_reader(process, i) && events & (EPOLLERR | EPOLLHUP);
}

/* --- delivery --- */

bool overhear_owes(const Process *process) {
        return process->owed[0] > 0 || process->owed[1] > 0;
}

bool overhear_note_owed(Process *process) {
        for (unsigned i = 0; i < CAPTURE_STREAMS; i++) {
                int there = 0;

                if (process->overhears & 1U << i && process->streams[i] >= 0 &&
                    ioctl(process->streams[i], FIONREAD, &there) == 0)
                        process->owed[i] = (size_t)there;
        }
        return overhear_owes(process);
}

void overhear_pay(Process *process, unsigned i, size_t n) {
        process->owed[i] -= n < process->owed[i] ? n : process->owed[i];
        if (process->delivers && !overhear_owes(process))
                loop_timer_set(process->timer, time_now_usec());
}

void overhear_pay_all(Process *process, unsigned i) {
        overhear_pay(process, i, process->owed[i]);
}
