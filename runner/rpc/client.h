/* SPDX-License-Identifier: Apache-2.0 */
/* The other end of server.h, for the CLI: one request at a time over a blocking socket. */
#pragma once

#include "base/error.h"
#include "base/json-write.h"
#include "base/json.h"

enum { RPC_CLIENT_QUEUE_MAX = 16 << 20 }; /* bytes that wait: rpc_client_queue() */

typedef struct RpcClient RpcClient;

/* Takes the fd of a connected socket, unless it fails. 0 or -ENOMEM. */
int rpc_client_new(int fd, RpcClient **ret, Error *reterr);
/* NULL is legal; returns NULL. */
RpcClient *rpc_client_free(RpcClient *client);

/* An fd for poll(2). What has been read already does not wake it: wait for it only after
 * rpc_client_next() has returned -EAGAIN. */
int rpc_client_fd(const RpcClient *client);

/* Sends a request; params is the text of one object, not pretty, or NULL; fds, 4 at most, go with
 * it and stay the caller's. *ret_id is the request's id, from 1. 0 or a negative errno of
 * sendmsg(2), -ENOMEM. */
int rpc_client_send(RpcClient *client, const char *method, const JsonWriter *params, const int *fds,
                    size_t fds_count, uint64_t *ret_id, Error *reterr);

/* Answers a request of the server's by result or by error, the text of one object; the other is
 * NULL. Errors as above. */
int rpc_client_answer(RpcClient *client, const char *request, const JsonWriter *result,
                      const JsonWriter *error, Error *reterr);

/* For who serves requests of the server's. From now on nothing that is sent is waited for: what the
 * server does not take waits in memory, of which -ENOBUFS is the end; and what the server asks or
 * tells before the answer to rpc_client_call() is kept for rpc_client_next(). */
void rpc_client_queue(RpcClient *client);
/* Bytes that wait. */
size_t rpc_client_queued(const RpcClient *client);
/* Whether something waits, for POLLOUT; rpc_client_flush() sends what can be sent. 0 or a negative
 * errno. */
bool rpc_client_waits(const RpcClient *client);
int rpc_client_flush(RpcClient *client);

/* A message that has come: an answer (id, and result or the error), a notification (method), or a
 * request of the server's (method and request). */
typedef struct RpcMessage {
        JsonDocument *document;  /* owns the rest; the caller frees it by rpc_message_clear() */
        uint64_t id;             /* 0 of a notification, and of an error about the connection */
        const char *method;      /* of a notification or of a request of the server's */
        const JsonValue *params; /* of the same */
        const char *request;     /* the id of a request of the server's, which wants an answer */
        const JsonValue *result; /* NULL of an answer that is an error */
        int fds[4];              /* FD_NONE where there is none; take them or they are closed */
} RpcMessage;
#define RPC_MESSAGE_NONE                                                                           \
        {                                                                                          \
                .fds = { FD_NONE, FD_NONE, FD_NONE, FD_NONE }                                      \
        }
void rpc_message_clear(RpcMessage *message);

/* The next message, of RPC_ANSWER_MAX bytes at most. wait: waits for it; otherwise -EAGAIN when
 * there is none. 0; -EPIPE with an error when the other side has gone, -ECONNRESET when it has and
 * has not read all that was sent; an answer that is an error is 0 with result NULL, and *reterr is
 * that error, kind, errno and cure as the server had them. */
int rpc_client_next(RpcClient *client, bool wait, RpcMessage *ret, Error *reterr);

/* Whether it ends the waiting for the answer to id: an error without an id is about a request that
 * could not be read, which may be that one, or about the connection. */
bool rpc_message_answers(const RpcMessage *message, uint64_t id);

/* Sends and waits for the answer; what has a method and comes before it is dropped, unless
 * rpc_client_queue() was called. 0 with a result, or negative with the error, the server's
 * included. -ECONNRESET: the other side has gone without having read the whole request, so that
 * nothing has come of it; with -EPIPE something may have. */
int rpc_client_call(RpcClient *client, const char *method, const JsonWriter *params, const int *fds,
                    size_t fds_count, RpcMessage *ret, Error *reterr);
