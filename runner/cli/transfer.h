/* SPDX-License-Identifier: Apache-2.0 */
/* Copies files between the caller and a session. Descriptors are passed to the keeper, so no
 * message carries their bytes, and no half-written file appears at its place. */
#pragma once

#include "files/path.h"
#include "rpc/client.h"

/* Connects to the session's keeper, and starts one if it is at rest. The caller owns *ret. */
int transfer_open(const char *session, RpcClient **ret, Error *reterr);
/* Does the same for requests that only read, and leaves the session at rest if possible. */
int transfer_open_to_read(const char *session, RpcClient **ret, Error *reterr);

/* Sends one request. params is an object whose members are written; this function always ends and
 * frees it. fd is passed along unless it is FD_NONE. ret may be NULL if the reply does not
 * matter. */
int transfer_call(RpcClient *client, const char *method, JsonWriter *params, int fd,
                  RpcMessage *ret, Error *reterr);
/* Starts the params of a request with the member "path". */
JsonWriter transfer_path(const char *path);

/* Starts an operation: one row in the session's history, and progress on the terminal (progress.h).
 * name is the verb; operands is NULL-terminated. The operation continues even if the history has no
 * room for the row. */
void transfer_begin(RpcClient *client, const char *name, const char *const *operands);
/* Ends the operation. r and error are its result. */
void transfer_end(RpcClient *client, int r, const Error *error);

/* Returns whether the session's path is a directory, and false if that is unknown. */
bool transfer_is_directory(RpcClient *client, const char *path);
/* Returns in *ret the path, or PATH/NAME if the path is a directory. NAME is the last part of name.
 * "" is the workspace. The caller owns *ret. */
int transfer_target(RpcClient *client, const char *path, const char *name, char **ret,
                    Error *reterr);
/* Returns the target of a host file in the session, in the same way. "-" has no name, and cure then
 * tells how to give one. */
int transfer_put_target(RpcClient *client, const char *path, const char *file, const char *cure,
                        char **ret, Error *reterr);
/* If r is -ENOENT, adds a cure that makes the directory of a session's path. Returns r. */
int transfer_cure_parents(int r, const char *path, Error *reterr);

/* Returns STDOUT_FILENO or STDERR_FILENO if file is a name of it, such as /dev/stdout; "-" is
 * stdout. Otherwise returns FD_NONE. Such a file must not be replaced: later output of other
 * programs would go to the old file and be lost. */
int transfer_own_output(const char *file);
/* Copies a session's file to a host file, or to stdout ("-"). A regular file appears complete or
 * not at all. Other files are written to, except for a FIFO or socket with a name (-ENXIO). */
int transfer_get(RpcClient *client, const char *path, const char *file, Error *reterr);
/* Opens a session's file. The caller owns *ret_fd. */
int transfer_open_file(RpcClient *client, const char *path, int *ret_fd, unsigned *ret_mode,
                       Error *reterr);
/* Copies a host file, or stdin ("-"), into the session. Refuses a FIFO or socket with a name
 * (-ENXIO). */
int transfer_put(RpcClient *client, const char *file, const char *path, Error *reterr);
/* Copies from an fd, which the caller keeps. mode 0 keeps the mode of an existing file. */
int transfer_put_fd(RpcClient *client, int fd, const char *path, unsigned mode, Error *reterr);

/* Makes the error of a host file that cannot be read or written, with its cure. doing: "read" or
 * "write". Returns r, the negative errno. */
int transfer_refuse(const char *doing, const char *path, int r, Error *reterr);

/* Opens a host path; flags are those of open(2), with O_CLOEXEC added. No link is followed in a
 * directory that the session's commands can write, because they may have made it (beneath_open()).
 * Returns an fd that the caller owns, or a negative errno: -ELOOP for such a link. */
int transfer_open_own(RpcClient *client, const char *path, int flags);
/* Opens the file of an O_PATH fd, whose status is st. Returns an fd that the caller owns, or a
 * negative errno. -ENXIO means a FIFO or socket with a name, whose other end may not be open. */
int transfer_open_stream(int path_fd, const struct stat *st, int flags);
/* Opens a host file for reading. Refuses a directory, and (-ENXIO) a FIFO or socket that has a
 * name, unless holt has it open already. Opening never waits: a lease of another process on the
 * file gives -EAGAIN. The caller owns *ret_fd. */
int transfer_open_input(RpcClient *client, const char *file, int *ret_fd, struct stat *ret_st,
                        Error *reterr);
/* Finds the place of a host path: opens its directory and copies its last part. The caller must
 * always clear ret. Returns -EISDIR if the path has no last part. */
int transfer_place(RpcClient *client, const char *path, FilesPlace *ret);
/* Returns the last part of a path, without trailing slashes: "." for "" or "/". The caller owns it;
 * NULL if memory is out. */
char *transfer_name(const char *path);
/* Returns the name of an entry of files.list, as bytes. The caller owns it. Returns NULL if memory
 * is out, or if the entry has no name. */
char *transfer_entry_name(const JsonValue *entry);
