/* SPDX-License-Identifier: Apache-2.0 */
#include "process/process-internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

void process_close_stream(Process *process, unsigned i) {
        process->stream_watches[i] = loop_unwatch(process->stream_watches[i]);
        process->streams[i] = fd_close(process->streams[i]);
        detour_close(process, i);
}

static void stream_close_input(Process *process) {
        process->input_watch = loop_unwatch(process->input_watch);
        process->input = fd_close(process->input);
        process->source = fd_close(process->source);
        free(process->pending);
        process->pending = NULL;
        process->pending_length = 0;
}

void process_release(Process *process, bool all) {
        for (unsigned i = 0; i < CAPTURE_STREAMS; i++)
                if (all || !detour_has_more(process, i))
                        process_close_stream(process, i);
        stream_close_input(process);
        process->master = fd_close(process->master);
        process->timer = loop_timer_free(process->timer);
}

/* --- output --- */

/* Reads what is there now. Returns false at the end of the stream. */
static bool read_stream(Process *process, unsigned i) {
        _uninitialized_ char buf[CAPTURE_CHUNK_MAX];
        ssize_t n = read(process->streams[i], buf, sizeof(buf));

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return true;
        /* EIO means that no process has the terminal open any more. */
        (void)capture_add(&process->output, i, buf, n > 0 ? (size_t)n : 0, n <= 0);
        return n > 0;
}

static void stream_take(Process *process, unsigned i) {
        if (process->streams[i] < 0)
                return;
        if (!(process->sinks[i] >= 0 ? detour_pass : read_stream)(process, i))
                process_close_stream(process, i);
}

/* While a watcher holds the output, the pipe fills and the writer waits. If no writer is left, only
 * the contents of the pipe remain. */
void process_follow_output(Process *process) {
        const bool held = capture_is_held(&process->output);

        for (int i = 0; i < CAPTURE_STREAMS; i++)
                if (process->stream_watches[i] && process->sinks[i] < 0)
                        loop_watch_set(process->stream_watches[i], held ? 0 : EPOLLIN);
}

static void on_stream(Process *process, unsigned i, uint32_t events) {
        if (events & (EPOLLHUP | EPOLLERR) || process->sinks[i] >= 0 ||
            !capture_is_held(&process->output))
                stream_take(process, i);
        if (capture_is_held(&process->output))
                process_follow_output(process);
}

static void on_stdout(void *data, uint32_t events) {
        on_stream(data, 0, events);
}

static void on_stderr(void *data, uint32_t events) {
        on_stream(data, 1, events);
}

/* Returns whether no process has the other end open any more. */
static bool stream_has_ended(int fd) {
        struct pollfd end = { .fd = fd };

        return poll(&end, 1, 0) > 0 && end.revents & POLLHUP;
}

/* All output from before the command's end is in the pipe, which holds no more than this reads.
 * Output of a grandchild is read later as it comes. The reader gets everything now, including an
 * incomplete character at the end. */
void process_drain(Process *process) {
        enum { PIPE_ROUNDS = 32 };

        for (unsigned i = 0; i < CAPTURE_STREAMS; i++) {
                int there = 0;

                for (int round = 0; round < PIPE_ROUNDS && process->streams[i] >= 0; round++) {
                        if (ioctl(process->streams[i], FIONREAD, &there) < 0 ||
                            (there == 0 && !stream_has_ended(process->streams[i])))
                                break;
                        stream_take(process, i);
                }
        }
        capture_flush(&process->output);
}

/* --- input --- */

static void stream_on_input(void *data, uint32_t events) {
        Process *process = data;
        ssize_t n = 0;

        if (process->source >= 0 && process->pending_length == 0)
                detour_fill(process);
        if (process->pending_length > 0) {
                n = write(process->input, process->pending, process->pending_length);
                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
        }
        if (n < 0 || events & EPOLLERR)
                return stream_close_input(process);
        if (n > 0) {
                process->pending_length -= (size_t)n;
                memmove(process->pending, process->pending + n, process->pending_length);
        }
        if (process->pending_length > 0)
                return;
        free(process->pending);
        process->pending = NULL;
        if (process->input_ends)
                stream_close_input(process);
        else if (process->source < 0)
                process->input_watch = loop_unwatch(process->input_watch);
}

/* Leaves an error, or bytes that do not fit, to the watch. */
static size_t write_now(const Process *process, const char *data, size_t length) {
        ssize_t n = process->pending_length > 0 ? 0 : write(process->input, data, length);

        return n > 0 ? (size_t)n : 0;
}

int process_write(Process *process, const char *data, size_t length, Error *reterr) {
        size_t written;
        char *grown;
        int r = 0;

        if (process->input < 0 || process->input_ends || process->source >= 0) {
                (void)error_set(reterr, ERROR_USAGE, EPIPE, "stdin of %s is not open here",
                                process->id);
                return error_cure(reterr, -EPIPE,
                                  "The process was started without it, or it was closed, or the "
                                  "process has ended.");
        }
        if (length > PROCESS_INPUT_MAX - process->pending_length) {
                (void)error_set(reterr, ERROR_LIMIT, 0,
                                "%s does not read its stdin: %zu bytes are waiting", process->id,
                                process->pending_length);
                return error_cure(reterr, -ENOSPC, "Write again after it has read.");
        }
        written = write_now(process, data, length);
        if (written == length)
                return 0;
        data += written;
        length -= written;
        grown = realloc(process->pending, process->pending_length + length);
        if (!grown)
                return error_oom(reterr);
        memcpy(grown + process->pending_length, data, length);
        process->pending = grown;
        process->pending_length += length;
        if (!process->input_watch)
                r = loop_watch(process->all->loop, process->input, EPOLLOUT, stream_on_input,
                               process, &process->input_watch, reterr);
        return r;
}

void process_flush_input(Process *process) {
        if (process->input_watch)
                stream_on_input(process, 0);
}

void process_close_input(Process *process) {
        process->input_ends = true;
        if (process->input >= 0 && process->pending_length == 0 &&
            process->input != process->master)
                stream_close_input(process);
}

int process_resize(Process *process, uint16_t rows, uint16_t columns, Error *reterr) {
        const struct winsize size = { .ws_row = rows, .ws_col = columns };

        if (process->master >= 0 && ioctl(process->master, TIOCSWINSZ, &size) == 0)
                return 0;
        (void)error_set(reterr, ERROR_USAGE, ENOTTY, "%s has no terminal here", process->id);
        return -ENOTTY;
}

int process_watch_streams(Process *process, Error *reterr) {
        static const LoopWatchFn functions[CAPTURE_STREAMS] = { on_stdout, on_stderr };
        int r = 0;

        if (process->source >= 0 && !process->input_watch)
                r = loop_watch(process->all->loop, process->input, EPOLLOUT, stream_on_input,
                               process, &process->input_watch, reterr);
        for (unsigned i = 0; r == 0 && i < CAPTURE_STREAMS; i++)
                if (process->streams[i] >= 0 && !process->stream_watches[i] &&
                    !process->sink_full[i])
                        r = loop_watch(process->all->loop, process->streams[i], EPOLLIN,
                                       functions[i], process, &process->stream_watches[i], reterr);
        return r;
}
