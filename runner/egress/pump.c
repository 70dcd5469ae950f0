/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

enum {
        POOL_MAX = 64,          /* Empty pipes that are kept for later, at most. */
        PIPE_SIZE = 256 * 1024, /* The kernel's limit for a user's pipes may give less. */
        TURN_MOVES = 16,        /* Calls of splice(2) until others have their turn. */
};

struct Pipes {
        int items[POOL_MAX][2];
        size_t count;
};

Pipes *pipes_new(void) {
        return calloc(1, sizeof(Pipes));
}

static int pipes_take(Pipes *pipes, int ret[2]) {
        if (pipes->count > 0) {
                pipes->count--;
                ret[0] = pipes->items[pipes->count][0];
                ret[1] = pipes->items[pipes->count][1];
                return 0;
        }
        if (pipe2(ret, O_CLOEXEC | O_NONBLOCK) < 0) {
                ret[0] = ret[1] = FD_NONE;
                return -errno;
        }
        (void)fcntl(ret[1], F_SETPIPE_SZ, PIPE_SIZE);
        return 0;
}

/* Only an empty pipe may serve another connection, which must not get the bytes of this one. */
static void pump_drop_pipe(Pump *pump, Pipes *pipes) {
        if (pump->pipe[0] >= 0 && pump->held == 0 && pipes->count < POOL_MAX) {
                pipes->items[pipes->count][0] = TAKE_FD(pump->pipe[0]);
                pipes->items[pipes->count][1] = TAKE_FD(pump->pipe[1]);
                pipes->count++;
                return;
        }
        pump->pipe[0] = fd_close(pump->pipe[0]);
        pump->pipe[1] = fd_close(pump->pipe[1]);
        pump->held = 0;
}

void pump_clear(Pump *pump, Pipes *pipes) {
        free(pump->ahead);
        pump->ahead = NULL;
        pump_drop_pipe(pump, pipes);
}

static size_t pump_most(const Pump *pump) {
        return pump->limited && pump->left < PIPE_SIZE ? (size_t)pump->left : PIPE_SIZE;
}

/* splice(2) stops before the urgent byte of TCP, and reports the end of the source if it ends
 * there. So this reads the byte as an ordinary one (SO_OOBINLINE), and the bytes after it can
 * follow. The pipe has room. Returns the number of bytes moved. */
static ssize_t pump_take_urgent(Pump *pump) {
        char byte;

        pump->urgent = false;
        if (recv(pump->from, &byte, 1, MSG_DONTWAIT) != 1)
                return 0;
        return write(pump->pipe[1], &byte, 1);
}

/* Fills the pipe. EAGAIN may mean a full pipe, too; then the source may still be readable. */
static ssize_t pump_splice(Pump *pump) {
        ssize_t n = splice(pump->from, NULL, pump->pipe[1], NULL, pump_most(pump),
                           SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

        if (n > 0)
                return n;
        if (n < 0 && (errno != EAGAIN || pump->held > 0))
                return errno == EAGAIN ? 0 : -errno;
        if (n < 0) {
                pump->readable = pump->urgent && pump_take_urgent(pump) == 1;
                return pump->readable;
        }
        if (pump_take_urgent(pump) == 1)
                return 1;
        pump->ended = true;
        return 0;
}

/* Returns the bytes that were moved, 0 if none can be, or a negative errno. */
static ssize_t pump_fill(Pump *pump, Pipes *pipes) {
        ssize_t n;
        int r;

        if (pump->ended || !pump->readable || pump->held >= PIPE_SIZE ||
            (pump->limited && pump->left == 0))
                return 0;
        if (pump->pipe[0] < 0) {
                r = pipes_take(pipes, pump->pipe);
                if (r < 0)
                        return r;
        }
        n = pump_splice(pump);
        if (n > 0)
                pump->held += (size_t)n;
        if (n > 0 && pump->limited)
                pump->left -= (size_t)n;
        return n;
}

static ssize_t pump_drain(Pump *pump) {
        ssize_t n;

        if (pump->held == 0 || !pump->writable)
                return 0;
        n = splice(pump->pipe[0], NULL, pump->to, NULL, pump->held,
                   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (n < 0 && errno != EAGAIN)
                return -errno;
        if (n <= 0) {
                pump->writable = false;
                return 0;
        }
        pump->held -= (size_t)n;
        pump->moved += (uint64_t)n;
        return n;
}

/* Returns 1 once all bytes of `ahead` are sent, 0 if the target takes no more, or a negative errno.
 */
static int pump_send_ahead(Pump *pump) {
        while (pump->ahead && pump->writable) {
                ssize_t n = send(pump->to, pump->ahead + pump->ahead_sent,
                                 pump->ahead_length - pump->ahead_sent,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0 && errno != EAGAIN)
                        return -errno;
                pump->writable = n > 0;
                pump->ahead_sent += n > 0 ? (size_t)n : 0;
                pump->moved += n > 0 ? (uint64_t)n : 0;
                if (pump->ahead_sent == pump->ahead_length) {
                        free(pump->ahead);
                        pump->ahead = NULL;
                }
        }
        return !pump->ahead;
}

int pump_run(Pump *pump, Pipes *pipes) {
        int r = pump_send_ahead(pump);

        if (r <= 0)
                return r < 0 ? r : PUMP_WAITS;
        for (int i = 0; i < TURN_MOVES; i++) {
                ssize_t filled = pump_fill(pump, pipes), drained;

                if (filled < 0)
                        return (int)filled;
                drained = pump_drain(pump);
                if (drained < 0)
                        return (int)drained;
                if (pump->held == 0)
                        pump_drop_pipe(pump, pipes);
                if (pump->ended && pump->held == 0) {
                        if (!pump->shut && shutdown(pump->to, SHUT_WR) < 0 && errno != ENOTCONN)
                                return -errno;
                        pump->shut = true;
                        return PUMP_DONE;
                }
                if (filled == 0 && drained == 0)
                        return PUMP_WAITS;
        }
        return PUMP_BUSY;
}
