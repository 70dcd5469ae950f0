/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "base/pass-fds.h"
#include "rpc/server.h"

enum { GATHER_MAX = 32 }; /* lines in one message */

struct RpcQueued {
        RpcQueued *next;
        size_t length, sent;
        size_t fds_count; /* 0 once they are sent */
        int fds[RPC_FDS_MAX];
        char bytes[];
};

/* --- sending --- */

ssize_t rpc_send_message(int fd, struct iovec *iov, size_t iov_count, const int *fds,
                         size_t fds_count, bool wait) {
        PassedFds passed;
        struct msghdr message = { .msg_iov = iov, .msg_iovlen = iov_count };
        ssize_t n;

        static_assert((int)RPC_FDS_MAX <= (int)PASS_FDS_MAX, "all fds fit into a message");
        pass_fds(&message, &passed, fds, fds_count);
        n = sendmsg(fd, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
        return n < 0 ? -errno : n;
}

/* Calls write(2) and consumes its SIGPIPE. Ignoring SIGPIPE instead would be inherited by children.
 */
static ssize_t write_quietly(int fd, const void *bytes, size_t length) {
        static const struct timespec at_once = { 0, 0 };
        sigset_t pipe_signal, before;
        ssize_t n;

        (void)sigemptyset(&pipe_signal);
        (void)sigaddset(&pipe_signal, SIGPIPE);
        (void)sigprocmask(SIG_BLOCK, &pipe_signal, &before);
        n = write(fd, bytes, length);
        if (n < 0)
                n = -errno;
        if (n == -EPIPE)
                (void)sigtimedwait(&pipe_signal, NULL, &at_once);
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        return n;
}

/* Other processes may share a pipe or terminal, so O_NONBLOCK is not set. One that is ready takes
 * PIPE_BUF bytes without blocking (pipe(7)). */
static ssize_t write_some(int fd, const struct iovec *iov) {
        struct pollfd p = { .fd = fd, .events = POLLOUT };
        int ready = poll(&p, 1, 0);

        if (ready < 0)
                return -errno;
        if (ready == 0)
                return -EAGAIN;
        return write_quietly(fd, iov->iov_base, iov->iov_len < PIPE_BUF ? iov->iov_len : PIPE_BUF);
}

/* Returns the number of sent bytes, 0 if none can be sent now, or a negative errno. */
static ssize_t send_some(const RpcQueue *queue, struct iovec *iov, size_t iov_count, const int *fds,
                         size_t fds_count) {
        ssize_t n;

        do
                n = queue->socket
                            ? rpc_send_message(queue->fd, iov, iov_count, fds, fds_count, false)
                            : write_some(queue->fd, iov);
        while (n == -EINTR);
        return n == -EAGAIN ? 0 : n;
}

/* --- the queue --- */

static void queued_close_fds(RpcQueue *queue, RpcQueued *line) {
        for (size_t i = 0; i < line->fds_count; i++)
                (void)fd_close(line->fds[i]);
        queue->fds -= line->fds_count;
        line->fds_count = 0;
}

static void queue_pop(RpcQueue *queue) {
        RpcQueued *line = queue->first;

        queued_close_fds(queue, line);
        queue->bytes -= sizeof(*line) + line->length;
        queue->first = line->next;
        if (!queue->first)
                queue->last = NULL;
        free(line);
}

void rpc_queue_clear(RpcQueue *queue) {
        while (queue->first)
                queue_pop(queue);
}

static int copy_fds(RpcQueue *queue, RpcQueued *line, const int *fds, size_t count) {
        for (size_t i = 0; i < count; i++) {
                int fd = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);

                if (fd < 0)
                        return -errno;
                line->fds[line->fds_count++] = fd;
                queue->fds++;
        }
        return 0;
}

static int queue_push(RpcQueue *queue, const char *bytes, size_t length, const int *fds,
                      size_t count) {
        RpcQueued *line;
        int r;

        if (queue->fds + count > RPC_QUEUE_FDS_MAX)
                return -ENOBUFS;
        line = malloc(sizeof(*line) + length);
        if (!line)
                return -ENOMEM;
        *line = (RpcQueued){ .length = length };
        memcpy(line->bytes, bytes, length);
        r = copy_fds(queue, line, fds, count);
        if (r < 0) {
                queued_close_fds(queue, line);
                free(line);
                return r;
        }
        if (queue->last)
                queue->last->next = line;
        else
                queue->first = line;
        queue->last = line;
        queue->bytes += sizeof(*line) + length;
        return 0;
}

int rpc_queue_send(RpcQueue *queue, const char *bytes, size_t length, const int *fds,
                   size_t count) {
        assert(count <= RPC_FDS_MAX && (count == 0 || queue->socket));
        while (rpc_queue_empty(queue) && length > 0) {
                struct iovec iov = { (void *)bytes, length };
                ssize_t n = send_some(queue, &iov, 1, fds, count);

                if (n < 0)
                        return (int)n;
                if (n == 0)
                        break;
                bytes += n;
                length -= (size_t)n;
                count = 0;
        }
        return length > 0 ? queue_push(queue, bytes, length, fds, count) : 0;
}

/* Collects the lines of the next message, and returns their number. A line with fds is alone. */
static size_t queue_gather(const RpcQueue *queue, struct iovec iov[GATHER_MAX]) {
        size_t count = 0;

        for (RpcQueued *line = queue->first; line && count < GATHER_MAX; line = line->next) {
                if (line->fds_count > 0 && count > 0)
                        break;
                iov[count++] = (struct iovec){ line->bytes + line->sent,
                                               line->length - line->sent };
                if (line->fds_count > 0)
                        break;
        }
        return count;
}

static void note_sent(RpcQueue *queue, size_t n) {
        queued_close_fds(queue, queue->first);
        while (n > 0) {
                RpcQueued *line = queue->first;
                size_t left = line->length - line->sent;

                if (n < left) {
                        line->sent += n;
                        return;
                }
                n -= left;
                queue_pop(queue);
        }
}

int rpc_queue_flush(RpcQueue *queue) {
        while (!rpc_queue_empty(queue)) {
                struct iovec iov[GATHER_MAX];
                size_t count = queue_gather(queue, iov);
                ssize_t n = send_some(queue, iov, count, queue->first->fds,
                                      queue->first->fds_count);

                if (n <= 0)
                        return (int)n;
                note_sent(queue, (size_t)n);
        }
        return 0;
}
