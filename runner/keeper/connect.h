/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of a keeper, and of a reader (reader.c): starts one and connects to it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/wait.h"

struct RpcMethod;

enum {
        KEEPER_READY_FD = 3,     /* Pipe for one byte when the keeper is ready, or for an Error. */
        KEEPER_DIRECTORY_FD = 4, /* O_PATH of the session's directory. */
};

/* In usec. A keeper that is not ready, or has not ended, by then is killed (end.c). */
enum { KEEPER_START_TIME = HOLT_WAIT(20000000), KEEPER_END_TIME = HOLT_WAIT(20000000) };

/* Runs the keeper, which serves these methods; the data of their functions is the Keeper. argv[1]
 * is the session's name, and the fds are those above. Returns an exit code. */
int keeper_main(int argc, char **argv, const struct RpcMethod *methods, size_t methods_count);

/* Connects to the keeper of session name, and starts one if none is live. Returns 0, or a negative
 * errno; if the keeper could not start, the error is the keeper's own. */
int keeper_connect(const char *name, int *ret_fd, Error *reterr);
/* Runs a reader, which serves the client on its socket, KEEPER_READY_FD, by these methods; their
 * data is a Keeper that has the parts of keeper_show_files(). The other parameters are as above. */
int reader_main(int argc, char **argv, const struct RpcMethod *methods, size_t methods_count);

/* Starts a reader of the files of a session at rest, whose directory is dir_fd. *ret_fd is the
 * client's end of its socket; the reader ends with it, and is a child of the caller. A reader that
 * cannot show the files, or finds the session live, reads no request. The client then sees the
 * connection end, and asks a keeper. Returns 0 or a negative errno. */
int reader_start(const char *name, int dir_fd, int *ret_fd, pid_t *ret_pid, Error *reterr);
/* Whether to connect again, after a pause, and repeat a request whose reply was r. That is safe if
 * the keeper had gone before it read the request (-ECONNRESET), or the sandbox before it got the
 * request (-ESHUTDOWN). *tries is 0 at first. */
bool keeper_may_retry(int r, unsigned *tries);
