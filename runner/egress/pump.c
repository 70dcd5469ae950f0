/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

enum {
        TURN_BYTES = 4 * 1024 * 1024, /* Bytes until others have their turn. */
        COPY_SIZE = 16 * 1024,        /* Bytes that are copied at once. */
        BULK = 64 * 1024,             /* After a turn with fewer bytes, the pump copies. */
        KINDS = 3,
};

/* Pipes of several sizes. The kernel limits the pages of all pipes of a user: beyond 64 MiB, each
 * new pipe gets two pages (pipe(7)). All processes of this user share that limit. So only a few
 * pipes are large, and those are used first. */
static const struct {
        size_t size;
        size_t most; /* Pipes of this size that exist at a time. */
} kinds[KINDS] = {
        { 1024 * 1024, 8 },
        { 256 * 1024, 32 },
        { 64 * 1024, SIZE_MAX }, /* A new pipe has this size. */
};

enum { POOL_MAX = 32 }; /* Empty pipes of each size that are kept for later, at most. */

typedef struct Pool {
        size_t made; /* Pipes of this size that exist. */
        int items[POOL_MAX][2];
        size_t count;
} Pool;

struct Pipes {
        Pool pools[KINDS];
        char copied[COPY_SIZE];
};

Pipes *pipes_new(void) {
        return calloc(1, sizeof(Pipes));
}

static bool pipes_take_free(Pipes *pipes, Pump *pump) {
        for (unsigned kind = 0; kind < KINDS; kind++) {
                Pool *pool = &pipes->pools[kind];

                if (pool->count == 0)
                        continue;
                pool->count--;
                pump->pipe[0] = pool->items[pool->count][0];
                pump->pipe[1] = pool->items[pool->count][1];
                pump->kind = kind;
                return true;
        }
        return false;
}

/* Gives the pump a pipe. Returns 0 or a negative errno. */
static int pipes_take(Pipes *pipes, Pump *pump) {
        unsigned kind = 0;

        if (pipes_take_free(pipes, pump))
                return 0;
        if (pipe2(pump->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
                pump->pipe[0] = pump->pipe[1] = FD_NONE;
                return -errno;
        }
        while (kind < KINDS - 1 && (pipes->pools[kind].made >= kinds[kind].most ||
                                    fcntl(pump->pipe[1], F_SETPIPE_SZ, (int)kinds[kind].size) < 0))
                kind++;
        pump->kind = kind;
        pipes->pools[kind].made++;
        return 0;
}

/* Only an empty pipe may serve another connection, which must not get the bytes of this one. */
static void pump_drop_pipe(Pump *pump, Pipes *pipes) {
        Pool *pool = &pipes->pools[pump->kind];

        if (pump->pipe[0] < 0)
                return;
        if (pump->held == 0 && pool->count < POOL_MAX) {
                pool->items[pool->count][0] = TAKE_FD(pump->pipe[0]);
                pool->items[pool->count][1] = TAKE_FD(pump->pipe[1]);
                pool->count++;
                return;
        }
        pump->pipe[0] = fd_close(pump->pipe[0]);
        pump->pipe[1] = fd_close(pump->pipe[1]);
        pump->held = 0;
        pool->made--;
}

void pump_clear(Pump *pump, Pipes *pipes) {
        free(pump->ahead);
        pump->ahead = NULL;
        pump_drop_pipe(pump, pipes);
}

/* Returns how many of `room` bytes the pump may read. */
static size_t pump_most(const Pump *pump, size_t room) {
        return pump->limited && pump->left < room ? (size_t)pump->left : room;
}

static void pump_count(Pump *pump, ssize_t n) {
        if (n > 0 && pump->limited)
                pump->left -= (size_t)n;
}

/* --- a few bytes --- */

/* Keeps bytes that the target does not take yet. */
static int pump_keep(Pump *pump, const char *data, size_t length) {
        pump->writable = false;
        pump->ahead = malloc(length);
        if (!pump->ahead)
                return -ENOMEM;
        memcpy(pump->ahead, data, length);
        pump->ahead_length = length;
        pump->ahead_sent = 0;
        return 0;
}

/* Sends bytes that were read. Returns `length` or a negative errno. */
static ssize_t pump_send(Pump *pump, const char *data, size_t length) {
        ssize_t n = send(pump->to, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        int r = 0;

        if (n < 0 && errno != EAGAIN)
                return -errno;
        n = n < 0 ? 0 : n;
        pump->moved += (uint64_t)n;
        if ((size_t)n < length)
                r = pump_keep(pump, data + n, length - (size_t)n);
        return r < 0 ? r : (ssize_t)length;
}

/* Copies bytes. For a few bytes, that takes half as many system calls as splice(2). If recv(2)
 * returns fewer than it may, the source is empty, unless an urgent byte or the end follows. Returns
 * the bytes that were read, 0 if there are none, or a negative errno. */
static ssize_t pump_copy(Pump *pump, Pipes *pipes) {
        const size_t most = pump_most(pump, sizeof(pipes->copied));
        ssize_t n = recv(pump->from, pipes->copied, most, MSG_DONTWAIT);

        if (n < 0 && errno != EAGAIN)
                return -errno;
        if (n < 0)
                pump->readable = pump->urgent = false;
        if (n == 0)
                pump->ended = true;
        if (n <= 0)
                return 0;
        if ((size_t)n < most && !pump->urgent && !pump->ending)
                pump->readable = false;
        pump->bulk = (size_t)n == sizeof(pipes->copied);
        pump_count(pump, n);
        return pump_send(pump, pipes->copied, (size_t)n);
}

/* --- many bytes --- */

/* splice(2) stops before the urgent byte of TCP. If that byte is the next one, splice(2) may report
 * the end of the source. So this function reads the byte as an ordinary one (SO_OOBINLINE), and the
 * bytes after it can follow. The pipe has room. Returns the number of bytes moved. */
static ssize_t pump_take_urgent(Pump *pump) {
        char byte;

        pump->urgent = false;
        if (recv(pump->from, &byte, 1, MSG_DONTWAIT) != 1)
                return 0;
        return write(pump->pipe[1], &byte, 1);
}

/* Fills the pipe. EAGAIN may mean a full pipe, too; then the source may still be readable. */
static ssize_t pump_splice(Pump *pump, size_t room) {
        ssize_t n = splice(pump->from, NULL, pump->pipe[1], NULL, pump_most(pump, room),
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

/* Returns the bytes that were read, 0 if there are none, or a negative errno. */
static ssize_t pump_fill(Pump *pump, Pipes *pipes) {
        int r = pump->pipe[0] < 0 ? pipes_take(pipes, pump) : 0;
        ssize_t n;

        if (r < 0)
                return r;
        if (pump->held >= kinds[pump->kind].size)
                return 0;
        n = pump_splice(pump, kinds[pump->kind].size - pump->held);
        if (n > 0)
                pump->held += (size_t)n;
        pump_count(pump, n);
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

/* --- a turn --- */

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

/* Reads and writes once. Returns the bytes that were read and written, or a negative errno. */
static ssize_t pump_step(Pump *pump, Pipes *pipes) {
        const bool reads = pump->readable && !pump->ended && !(pump->limited && pump->left == 0);
        ssize_t filled = 0, drained;

        if (reads && pump->held == 0 && !pump->bulk)
                return pump->writable ? pump_copy(pump, pipes) : 0;
        if (reads)
                filled = pump_fill(pump, pipes);
        if (filled < 0)
                return filled;
        drained = pump_drain(pump);
        if (pump->held == 0)
                pump_drop_pipe(pump, pipes);
        return drained < 0 ? drained : filled + drained;
}

/* Tells the target that the source has ended, unless its socket is closed next. */
static int pump_shut(Pump *pump, bool last) {
        if (!pump->shut && !last && shutdown(pump->to, SHUT_WR) < 0 && errno != ENOTCONN)
                return -errno;
        pump->shut = true;
        return PUMP_DONE;
}

int pump_run(Pump *pump, Pipes *pipes, bool last) {
        size_t moved = 0;

        while (moved < TURN_BYTES) {
                int r = pump_send_ahead(pump);
                ssize_t n = r == 1 ? pump_step(pump, pipes) : 0;

                if (r < 0 || n < 0)
                        return r < 0 ? r : (int)n;
                moved += (size_t)n;
                if (pump->ended && pump->held == 0 && !pump->ahead)
                        return pump_shut(pump, last);
                if (n == 0) {
                        pump->bulk = pump->bulk && moved >= BULK;
                        return PUMP_WAITS;
                }
        }
        return PUMP_BUSY;
}
