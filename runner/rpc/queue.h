/* SPDX-License-Identifier: Apache-2.0 */
/* The outgoing lines of one connection. Bytes that the other side does not take at once are kept.
 *
 * Fds are sent with the first byte of their line, in a message without bytes of any other line. The
 * receiver assigns fds to lines by the bytes that they came with (unix(7), SCM_RIGHTS). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/error.h"

/* Calls sendmsg(2) once, without SIGPIPE. fds_count is at most RPC_FDS_MAX. Returns the number of
 * bytes, or a negative errno. */
ssize_t rpc_send_message(int fd, struct iovec *iov, size_t iov_count, const int *fds,
                         size_t fds_count, bool wait);

enum { RPC_QUEUE_FDS_MAX = 32 }; /* queued fds, each open in this process until it is sent */

typedef struct RpcQueued RpcQueued;

/* Set fd and socket, and zero the rest. */
typedef struct RpcQueue {
        int fd;      /* borrowed */
        bool socket; /* written by sendmsg(2); otherwise by write(2) */

        RpcQueued *first, *last;
        size_t bytes; /* memory of the queued lines, overhead included */
        size_t fds;   /* number of queued fds */
} RpcQueue;

void rpc_queue_clear(RpcQueue *queue);
static inline bool rpc_queue_empty(const RpcQueue *queue) {
        return queue->first == NULL;
}

/* Sends a line. If it cannot be sent at once, the queue keeps a copy of the bytes, and duplicates
 * the fds by dup(2). At most RPC_FDS_MAX fds can be sent, only over a unix socket.
 *
 * 0 or a negative errno. Without fds, an error means that the connection has failed. With fds, an
 * error means that no byte of the line was sent. The error comes from sendmsg(2) or dup(2), or is
 * -ENOBUFS: the queue would have more than RPC_QUEUE_FDS_MAX fds. */
int rpc_queue_send(RpcQueue *queue, const char *bytes, size_t length, const int *fds, size_t count);
/* Sends as many queued bytes as the other side takes. A negative errno means that the connection
 * has failed. */
int rpc_queue_flush(RpcQueue *queue);
