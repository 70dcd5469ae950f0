/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/client-loop.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "keeper/connect.h"

int client_loop_signals(Error *reterr) {
        sigset_t set;
        int fd;

        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGTERM);
        (void)sigaddset(&set, SIGINT);
        (void)sigaddset(&set, SIGHUP);
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        (void)signal(SIGPIPE, SIG_IGN);
        fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return fd < 0 ? error_set(reterr, ERROR_SETUP, errno, "cannot create a signalfd") : fd;
}

int client_loop_init(ClientLoop *loop, const ClientLoopFns *fns, void *data, size_t line_max,
                     Error *reterr) {
        const int fd = client_loop_signals(reterr);

        *loop = (ClientLoop){
                .fns = fns, .data = data, .signal_fd = fd, .in = { .max = line_max }
        };
        return fd < 0 ? fd : 0;
}

void client_loop_clear(ClientLoop *loop) {
        loop->keeper = rpc_client_free(loop->keeper);
        loop->signal_fd = fd_close(loop->signal_fd);
        framing_clear(&loop->in);
}

/* --- the client --- */

/* A pipe that is ready takes PIPE_BUF bytes without blocking, and so does a socket. stdout itself
 * may belong to other programs, so it stays in blocking mode. */
static int client_loop_write(const ClientLoop *loop, const char *data, size_t length) {
        for (size_t at = 0; at < length;) {
                struct pollfd fds[] = { { .fd = STDOUT_FILENO, .events = POLLOUT },
                                        { .fd = loop->signal_fd, .events = POLLIN } };
                ssize_t n;

                if (poll(fds, 2, -1) < 0 && errno != EINTR)
                        return -errno;
                if (fds[1].revents)
                        return -EINTR;
                if (!fds[0].revents)
                        continue;
                n = write(STDOUT_FILENO, data + at,
                          length - at < PIPE_BUF ? length - at : PIPE_BUF);
                if (n < 0 && errno != EINTR)
                        return -errno;
                at += n > 0 ? (size_t)n : 0;
        }
        return 0;
}

void client_loop_send(ClientLoop *loop, JsonWriter *w) {
        if (loop->ended || json_write_finish(w) < 0)
                return;
        if (client_loop_write(loop, w->data, w->length) < 0)
                loop->ended = loop->signalled = true;
}

bool client_loop_read_lines(int fd, Framing *in, void (*fn)(void *data, const FramingLine *line),
                            void *data) {
        FramingLine line;
        size_t size;
        char *room;
        ssize_t n = framing_room(in, &room, &size) < 0 ? 0 : read(fd, room, size);

        if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return true;
        if (n <= 0)
                return false;
        framing_add(in, (size_t)n);
        while (framing_next(in, &line))
                fn(data, &line);
        return true;
}

/* --- the keeper --- */

int client_loop_connect(ClientLoop *loop, const char *session, Error *reterr) {
        int fd, r = keeper_connect(session, &fd, reterr);

        if (r < 0)
                return r;
        r = rpc_client_new(fd, &loop->keeper, reterr);
        if (r < 0) {
                fd_close(fd);
                return r;
        }
        rpc_client_queue(loop->keeper);
        return 0;
}

void client_loop_read_keeper(ClientLoop *loop) {
        while (loop->keeper && !loop->ended) {
                RpcMessage message = RPC_MESSAGE_NONE;
                Error error = { 0 };
                int r = rpc_client_next(loop->keeper, false, &message, &error);

                if (r == -EAGAIN)
                        return;
                if (r < 0) {
                        loop->keeper = rpc_client_free(loop->keeper);
                        loop->fns->on_lost(loop->data, &error);
                } else
                        loop->fns->on_message(loop->data, &message, &error);
                rpc_message_clear(&message);
        }
}

/* --- the loop --- */

static int client_loop_wait(ClientLoop *loop, int time, Error *reterr) {
        struct pollfd fds[] = { { .fd = loop->deaf ? FD_NONE : STDIN_FILENO, .events = POLLIN },
                                { .fd = loop->signal_fd, .events = POLLIN },
                                { .fd = FD_NONE, .events = POLLIN } };

        if (loop->keeper)
                fds[2].fd = rpc_client_fd(loop->keeper);
        if (loop->keeper && rpc_client_waits(loop->keeper))
                fds[2].events |= POLLOUT;
        if (poll(fds, ELEMENTSOF(fds), time) < 0 && errno != EINTR)
                return error_set(reterr, ERROR_SETUP, errno, "cannot wait for the client");
        if (fds[1].revents) {
                loop->ended = loop->signalled = true;
                return 0;
        }
        if (fds[2].revents & POLLOUT)
                (void)rpc_client_flush(loop->keeper);
        if (fds[0].revents &&
            !client_loop_read_lines(STDIN_FILENO, &loop->in, loop->fns->on_line, loop->data))
                loop->fns->on_close(loop->data);
        return 0;
}

int client_loop_run(ClientLoop *loop, Error *reterr) {
        while (!loop->ended) {
                int time, r;

                client_loop_read_keeper(loop);
                if (loop->ended)
                        return 0;
                time = loop->fns->before_wait ? loop->fns->before_wait(loop->data) : -1;
                r = client_loop_wait(loop, time, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}
