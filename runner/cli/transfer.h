/* SPDX-License-Identifier: Apache-2.0 */
/* Files between the caller and a session. Their bytes go by fds, from file to file: no byte of them
 * is in a message, and none stays half-written at its place. */
#pragma once

#include "files/path.h"
#include "rpc/client.h"

/* A connection to the session's keeper; owned by the caller. */
int transfer_open(const char *session, RpcClient **ret, Error *reterr);

/* A request: params is an object whose members are written, and which is ended and freed here in
 * any case. fd is FD_NONE or goes along. ret may be NULL where the answer says nothing. */
int transfer_call(RpcClient *client, const char *method, JsonWriter *params, int fd,
                  RpcMessage *ret, Error *reterr);
/* Begins such an object, with the path. */
JsonWriter transfer_path(const char *path);

/* What is done from here to transfer_end() is one row of the session's history, called name, about
 * operands, NULL-terminated, and its progress is shown (progress.h). It is done all the same where
 * the history has no place for it. */
void transfer_begin(RpcClient *client, const char *name, const char *const *operands);
/* r and error are what came of it. */
void transfer_end(RpcClient *client, int r, const Error *error);

/* Whether there is a directory at a session's path. A path that cannot be read is none. */
bool transfer_is_directory(RpcClient *client, const char *path);
/* PATH, or PATH/NAME where that is a directory, name's last part; owned by the caller. "" is the
 * workspace. */
int transfer_target(RpcClient *client, const char *path, const char *name, char **ret,
                    Error *reterr);
/* The same of the caller's file; "-" has no name that it could have there, and cure is how one is
 * given. */
int transfer_put_target(RpcClient *client, const char *path, const char *file, const char *cure,
                        char **ret, Error *reterr);
/* r is of what was to be made at a session's path: where its directory is missing the error says
 * how it is made. Returns r. */
int transfer_cure_parents(int r, const char *path, Error *reterr);

/* The fd that a file of the caller's is a name of, "-" for stdout, or FD_NONE. A file that is one
 * of these is not to be replaced: what others write to it afterwards would go to the old one, and
 * be lost. */
int transfer_own_output(const char *file);
/* From the session's path to a file of the caller's, "-" for stdout: at once, or not at all. What
 * is no regular file there is written to, but for a FIFO or socket by its name (ENXIO). */
int transfer_get(RpcClient *client, const char *path, const char *file, Error *reterr);
/* The session's file as an fd of the caller's. */
int transfer_open_file(RpcClient *client, const char *path, int *ret_fd, unsigned *ret_mode,
                       Error *reterr);
/* From a file of the caller's, "-" for stdin; not from a FIFO or socket by its name (ENXIO). */
int transfer_put(RpcClient *client, const char *file, const char *path, Error *reterr);
/* From an fd, which stays the caller's; mode 0 keeps that of what is there. */
int transfer_put_fd(RpcClient *client, int fd, const char *path, unsigned mode, Error *reterr);

/* Opens a path of the caller's; flags as for open(2), O_CLOEXEC is added. In a directory that the
 * session's commands can write no link is followed: it may be theirs (beneath_open()). An fd that
 * the caller owns, or a negative errno: -ELOOP where there is such a link. */
int transfer_open_own(RpcClient *client, const char *path, int flags);
/* Opens a file of the caller's for reading. A FIFO or socket is refused unless holt has it open
 * already, or it has no name (-ENXIO); so is a directory. An open never waits: if a process has a
 * lease on the file, that is -EAGAIN. *ret_fd is the caller's. */
int transfer_open_input(RpcClient *client, const char *file, int *ret_fd, struct stat *ret_st,
                        Error *reterr);
/* Opens the directory in which such a path ends, and tells the last part. ret must be cleared in
 * any case; -EISDIR of a path without a last part. */
int transfer_place(RpcClient *client, const char *path, FilesPlace *ret);
/* The last part of a path, without slashes at its end: "." of "" or "/". Owned by the caller; NULL
 * when memory is out. */
char *transfer_name(const char *path);
/* The name of an entry that files.list has answered, its bytes: owned by the caller. NULL when
 * memory is out, or for an entry that has no name. */
char *transfer_entry_name(const JsonValue *entry);
