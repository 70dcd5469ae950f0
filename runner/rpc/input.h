/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines, with the fds that belong to them, from a socket, a pipe, a terminal or a file. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "rpc/framing.h"
#include "rpc/server.h"

/* The received fds of one line. */
typedef struct RpcFds {
        uint64_t line; /* offset of the line in the stream */
        bool used;     /* the other fields are set */
        bool refused;  /* too many fds came, so some were closed */
        size_t count;
        int fds[RPC_FDS_MAX];
} RpcFds;
void rpc_fds_close(RpcFds *fds);

/* Set fd, socket and framing.max, and zero the rest. */
typedef struct RpcInput {
        int fd;      /* borrowed */
        bool socket; /* read by recvmsg(2); otherwise by read(2) */

        Framing framing;
        RpcFds fds[2]; /* for the line that is being read, and for the next */
} RpcInput;
void rpc_input_clear(RpcInput *input);

/* Reads once. Call it only after rpc_input_next() has returned false. If wait is true, it blocks
 * until bytes come. Returns the number of bytes, 0 at the end of the stream, -EAGAIN, or another
 * negative errno. */
ssize_t rpc_input_read(RpcInput *input, bool wait);
/* Returns the next whole line like framing_next(), with its fds, which the caller then owns. */
bool rpc_input_next(RpcInput *input, FramingLine *ret, RpcFds *ret_fds);
/* Returns the bytes behind the last newline, like framing_rest(). */
bool rpc_input_rest(RpcInput *input, FramingLine *ret, RpcFds *ret_fds);
