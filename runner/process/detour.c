/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the caller that the command must not get: it gets pipes instead.
 *
 * Theory of operation. A process can open each of its files again, by /proc/self/fd. So it could
 * read a log that the caller has opened for appending, or cut a file that the caller has opened for
 * reading. For such a file (sandbox/stdio-files.c), the command gets a pipe. The keeper copies the
 * bytes between the pipe and the file. It writes them before it reports the end of the command.
 *
 * A write to a regular file does not wait for long. A named pipe or a terminal may have no room.
 * The bytes then stay in the command's pipe. */
#include "process/process-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/time.h"

enum {
        RETRY_TIME = 1000, /* ms */
};

void detour_take(Process *process, ProcessSpec *spec) {
        for (unsigned i = 0; i < CAPTURE_STREAMS; i++)
                if (spec->detours & (2U << i))
                        process->sinks[i] = TAKE_FD(spec->fds[i + 1]);
        if (!(spec->detours & 1))
                return;
        process->source = TAKE_FD(spec->fds[0]);
        process->source_at = lseek(process->source, 0, SEEK_CUR);
        spec->input = INPUT_PIPE;
}

/* Whether stdout and stderr share a pipe, which keeps the order of the command's writes. */
bool detour_is_shared(const Process *process) {
        const int *fds = process->sinks;
        struct stat first, second;

        return fds[0] >= 0 && fds[1] >= 0 && fstat(fds[0], &first) == 0 &&
               fstat(fds[1], &second) == 0 && first.st_dev == second.st_dev &&
               first.st_ino == second.st_ino && fcntl(fds[0], F_GETFL) == fcntl(fds[1], F_GETFL) &&
               lseek(fds[0], 0, SEEK_CUR) == lseek(fds[1], 0, SEEK_CUR);
}

bool detour_has_more(const Process *process, unsigned i) {
        int there = 0;

        return process->sinks[i] >= 0 && process->streams[i] >= 0 &&
               ioctl(process->streams[i], FIONREAD, &there) == 0 && there > 0;
}

bool process_has_output(const Process *process) {
        return detour_has_more(process, 0) || detour_has_more(process, 1);
}

bool processes_have_output(const Processes *all) {
        bool some = false;

        for (const Process *p = all->first; p && !some; p = p->next)
                some = process_has_output(p);
        return some;
}

void detour_close(Process *process, unsigned i) {
        process->sink_watches[i] = loop_unwatch(process->sink_watches[i]);
        process->sinks[i] = fd_close(process->sinks[i]);
        process->sink_full[i] = false;
        overhear_pay_all(process, i);
}

/* If a pipe has lost its readers, the command gets EPIPE as usual. holt does not report this as an
 * error. */
void detour_note_error(Process *process, int fd, int errnum) {
        static const char *const names[] = { "stdin", "stdout", "stderr" };

        if (errnum != EPIPE && errnum != ECONNRESET)
                (void)snprintf(process->stream_error, sizeof(process->stream_error),
                               "cannot %s %s: %s", fd ? "write" : "read", names[fd],
                               strerror(errnum));
}

/* --- output --- */

/* Returns the number of bytes that a file or terminal takes without waiting. It is also 1 if
 * poll(2) finds an error, which write(2) then reports. A terminal may report room and then take a
 * single character: it passes a newline on separately, and each piece can use up the room. */
static size_t detour_room(int fd, mode_t mode) {
        struct pollfd room = { .fd = fd, .events = POLLOUT };

        if (S_ISREG(mode))
                return CAPTURE_CHUNK_MAX;
        return poll(&room, 1, 0) > 0 ? 1 : 0;
}

/* The sink has room, or has lost its reader. */
static void detour_on_sink(Process *process, unsigned i, uint32_t events) {
        Error ignored;

        if (overhear_is_left(process, i, events)) {
                process_close_stream(process, i);
                return;
        }
        /* A process inside can read the command's pipe, too, and leave nothing to wait for. */
        if (!detour_has_more(process, i))
                overhear_pay_all(process, i);
        process->sink_full[i] = false;
        if (!overhear_minds_reader(process, i))
                process->sink_watches[i] = loop_unwatch(process->sink_watches[i]);
        (void)detour_watch(process, i, &ignored);
        (void)process_watch_streams(process, &ignored);
}

static void detour_on_stdout(void *data, uint32_t events) {
        detour_on_sink(data, 0, events);
}

static void detour_on_stderr(void *data, uint32_t events) {
        detour_on_sink(data, 1, events);
}

int detour_watch(Process *process, unsigned i, Error *reterr) {
        static const LoopWatchFn functions[CAPTURE_STREAMS] = { detour_on_stdout,
                                                                detour_on_stderr };
        const uint32_t events = process->sink_full[i] ? EPOLLOUT : 0;

        if (!process->sink_full[i] && !overhear_minds_reader(process, i))
                return 0;
        if (process->sink_watches[i]) {
                loop_watch_set(process->sink_watches[i], events);
                return 0;
        }
        return loop_watch(process->all->loop, process->sinks[i], events, functions[i], process,
                          &process->sink_watches[i], reterr);
}

/* Meanwhile, the command's pipe is not watched, because its end would be reported again and again.
 */
bool detour_wait(Process *process, unsigned i) {
        Error ignored;

        process->stream_watches[i] = loop_unwatch(process->stream_watches[i]);
        process->sink_full[i] = true;
        return detour_watch(process, i, &ignored) == 0;
}

/* The caller may have set O_NONBLOCK, and another process may have taken the room. */
static bool detour_may_retry(int fd) {
        struct pollfd room = { .fd = fd, .events = POLLOUT };

        return errno == EINTR || (errno == EAGAIN && poll(&room, 1, RETRY_TIME) > 0);
}

static bool detour_write(Process *process, unsigned i, const char *data, size_t length) {
        while (length > 0) {
                ssize_t n = write(process->sinks[i], data, length);

                if (n < 0 && detour_may_retry(process->sinks[i]))
                        continue;
                if (n < 0) {
                        detour_note_error(process, (int)i + 1, errno);
                        return false;
                }
                data += n;
                length -= (size_t)n;
        }
        return true;
}

/* splice(2) never waits for either pipe here, and takes only bytes that it delivers. poll(2) could
 * not promise that, because other writers may take the room. */
static bool detour_splice(Process *process, unsigned i) {
        ssize_t n = splice(process->streams[i], NULL, process->sinks[i], NULL, CAPTURE_CHUNK_MAX,
                           SPLICE_F_NONBLOCK);

        if (n >= 0 || errno == EINTR)
                return n != 0;
        if (errno == EAGAIN)
                return !detour_has_more(process, i) || detour_wait(process, i);
        detour_note_error(process, (int)i + 1, errno);
        return false;
}

/* Passes up to PIPE_BUF bytes per call to a terminal; process_drain() relies on this number. */
bool detour_pass(Process *process, unsigned i) {
        _uninitialized_ char buf[CAPTURE_CHUNK_MAX];
        struct stat st;

        if (process->overhears & 1U << i)
                return overhear_pass(process, i);
        if (fstat(process->sinks[i], &st) < 0)
                return false;
        if (S_ISFIFO(st.st_mode))
                return detour_splice(process, i);
        for (size_t passed = 0; passed < PIPE_BUF;) {
                const size_t room = detour_room(process->sinks[i], st.st_mode);
                ssize_t n;

                if (room == 0)
                        return detour_wait(process, i);
                n = read(process->streams[i], buf, room);
                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return true;
                if (n <= 0 || !detour_write(process, i, buf, (size_t)n))
                        return false;
                passed += (size_t)n;
        }
        return true;
}

/* Writes what the caller's file takes now. Returns whether more waits. */
static bool detour_flush(Process *process, unsigned i) {
        if (!detour_has_more(process, i))
                return false;
        if (!detour_pass(process, i))
                process_close_stream(process, i);
        return detour_has_more(process, i);
}

/* All files take turns, so that one without a reader does not use up the time of the others. */
void processes_flush(Processes *all, uint64_t end) {
        enum { PAUSE = 1 }; /* ms */
        bool waits = true;

        while (waits && time_now_usec() < end) {
                waits = false;
                for (Process *p = all->first; p; p = p->next)
                        for (unsigned i = 0; i < CAPTURE_STREAMS; i++)
                                waits |= detour_flush(p, i);
                if (waits)
                        (void)poll(NULL, 0, PAUSE);
        }
}

/* --- input --- */

/* Reads at an offset of its own, so that the caller's file offset stays the same. */
void detour_fill(Process *process) {
        char *buf = malloc(CAPTURE_CHUNK_MAX);
        ssize_t n = buf ? pread(process->source, buf, CAPTURE_CHUNK_MAX, process->source_at) : -1;

        if (n > 0) {
                free(process->pending);
                process->pending = buf;
                process->pending_length = (size_t)n;
                process->source_at += n;
                return;
        }
        if (n < 0)
                detour_note_error(process, 0, buf ? errno : ENOMEM);
        free(buf);
        process->source = fd_close(process->source);
        process->input_ends = true;
}
