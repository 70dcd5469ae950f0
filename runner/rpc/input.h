/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and the fds that belong to them, out of a socket, a pipe, a terminal or a file. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "rpc/framing.h"
#include "rpc/server.h"

/* The fds that have come for one line. */
typedef struct RpcFds {
        uint64_t line; /* its offset in the stream */
        bool used;
        bool refused; /* too many: some are closed */
        size_t count;
        int fds[RPC_FDS_MAX];
} RpcFds;
void rpc_fds_close(RpcFds *fds);

/* Zeroed but for fd, socket and framing.max is ready. */
typedef struct RpcInput {
        int fd;      /* borrowed */
        bool socket; /* recvmsg(2), otherwise read(2) */

        Framing framing;
        RpcFds fds[2]; /* of the line that is being read, and of one that has begun behind it */
} RpcInput;
void rpc_input_clear(RpcInput *input);

/* Reads once; not while rpc_input_next() has lines. wait: until there is something. The number of
 * bytes, 0 at the end of the stream, -EAGAIN, another negative errno. */
ssize_t rpc_input_read(RpcInput *input, bool wait);
/* The next whole line, as framing_next() has it, with its fds, which are the caller's then. */
bool rpc_input_next(RpcInput *input, FramingLine *ret, RpcFds *ret_fds);
/* The same of what came behind the last newline; see framing_rest(). */
bool rpc_input_rest(RpcInput *input, FramingLine *ret, RpcFds *ret_fds);
