/* SPDX-License-Identifier: Apache-2.0 */
/* Lines on their way out of one connection: what the other side does not take at once waits here.
 *
 * Fds travel with the first byte of their line, in a message that has no byte of another: the
 * receiver can only tell them by the bytes that they come with (unix(7), SCM_RIGHTS). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/error.h"

/* One sendmsg(2) without a signal; fds_count is RPC_FDS_MAX at most. Bytes, or a negative errno. */
ssize_t rpc_send_message(int fd, struct iovec *iov, size_t iov_count, const int *fds,
                         size_t fds_count, bool wait);

enum { RPC_QUEUE_FDS_MAX = 32 }; /* that wait in one queue: they are the keeper's until then */

typedef struct RpcQueued RpcQueued;

/* Zeroed but for fd and socket is ready. */
typedef struct RpcQueue {
        int fd;      /* borrowed */
        bool socket; /* sendmsg(2), otherwise write(2) */

        RpcQueued *first, *last;
        size_t bytes; /* that wait, with what keeping them costs */
        size_t fds;
} RpcQueue;

void rpc_queue_clear(RpcQueue *queue);
static inline bool rpc_queue_empty(const RpcQueue *queue) {
        return queue->first == NULL;
}

/* Sends bytes, and copies what can't be sent yet; so it does with the fds, by dup(2). fds only on
 * a unix socket, and RPC_FDS_MAX at most.
 *
 * 0 or a negative errno. With fds: of sendmsg(2), of dup(2), or -ENOBUFS (more than
 * RPC_QUEUE_FDS_MAX wait), and nothing of the line was sent. Without, the connection is at its end.
 */
int rpc_queue_send(RpcQueue *queue, const char *bytes, size_t length, const int *fds, size_t count);
/* Sends what waits, as far as the other side takes it. 0 or a negative errno: the end. */
int rpc_queue_flush(RpcQueue *queue);
