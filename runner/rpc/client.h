/* SPDX-License-Identifier: Apache-2.0 */
/* The client of server.h, for the command line: one request at a time over a blocking socket. */
#pragma once

#include "base/error.h"
#include "base/json-write.h"
#include "base/json.h"

enum { RPC_CLIENT_QUEUE_MAX = 16 << 20 }; /* unsent bytes after rpc_client_queue() */

typedef struct RpcClient RpcClient;

/* Makes a client of fd, a connected socket. The client owns fd unless this fails. Returns 0 or
 * -ENOMEM. */
int rpc_client_new(int fd, RpcClient **ret, Error *reterr);
/* NULL is legal; returns NULL. */
RpcClient *rpc_client_free(RpcClient *client);

/* An fd for poll(2). It does not report messages that were read already. Therefore poll it only
 * after rpc_client_next() has returned -EAGAIN. */
int rpc_client_fd(const RpcClient *client);

/* Sends a request.
 *
 * params  one JSON object without newlines, or NULL.
 * fds     at most 4 descriptors to send with it; the caller keeps its own.
 * ret_id  receives the id of the request, 1 or more.
 *
 * 0, -ENOMEM, or a negative errno of sendmsg(2). */
int rpc_client_send(RpcClient *client, const char *method, const JsonWriter *params, const int *fds,
                    size_t fds_count, uint64_t *ret_id, Error *reterr);

/* Replies to a request of the server. Exactly one of result and error is given, as one JSON object;
 * the other is NULL. Errors as above. */
int rpc_client_answer(RpcClient *client, const char *request, const JsonWriter *result,
                      const JsonWriter *error, Error *reterr);

/* Makes sending non-blocking, for clients that serve requests of the server. Bytes that the socket
 * does not take are queued; past RPC_CLIENT_QUEUE_MAX, sending fails with -ENOBUFS.
 * rpc_client_call() then keeps earlier requests and notifications for rpc_client_next(). */
void rpc_client_queue(RpcClient *client);
/* The number of queued bytes. */
size_t rpc_client_queued(const RpcClient *client);
/* Whether bytes are queued, so that the caller polls for POLLOUT. */
bool rpc_client_waits(const RpcClient *client);
/* Sends queued bytes without blocking. Returns 0 or a negative errno. */
int rpc_client_flush(RpcClient *client);

/* A received message: a reply (id, and result unless it is an error), a notification (method), or a
 * request of the server (method and request). */
typedef struct RpcMessage {
        JsonDocument *document;  /* owns all pointers below; freed by rpc_message_clear() */
        uint64_t id;             /* id of the request; 0: a notification or a connection error */
        const char *method;      /* NULL in a reply */
        const JsonValue *params; /* parameters of the method; NULL in a reply */
        const char *request;     /* id of a request of the server, which awaits a reply; or NULL */
        const JsonValue *result; /* NULL in a reply that is an error */
        int fds[4];              /* unused ones are FD_NONE; rpc_message_clear() closes the rest */
} RpcMessage;
#define RPC_MESSAGE_NONE                                                                           \
        {                                                                                          \
                .fds = { FD_NONE, FD_NONE, FD_NONE, FD_NONE }                                      \
        }
void rpc_message_clear(RpcMessage *message);

/* Reads the next message, of at most RPC_ANSWER_MAX bytes.
 *
 * If no message has come, this waits for one, or returns -EAGAIN when wait is false. A reply that
 * is an error returns 0 with result NULL, and *reterr has the kind, errno and cure that the server
 * sent. -EPIPE: the server has closed the connection. -ECONNRESET: it did so before it had read all
 * that was sent. */
int rpc_client_next(RpcClient *client, bool wait, RpcMessage *ret, Error *reterr);

/* Whether the message ends the wait for the reply to id. An error without an id counts, too: it
 * concerns the connection, or a request that could not be parsed and may be this one. */
bool rpc_message_answers(const RpcMessage *message, uint64_t id);

/* Sends a request and waits for its reply. Messages with a method that come before the reply are
 * dropped, unless rpc_client_queue() was called.
 *
 * 0 with a result, or negative with *reterr, also for an error that the server replied.
 * -ECONNRESET: the server closed the connection before it had read the whole request, so the
 * request had no effect. -EPIPE: it may have had one. */
int rpc_client_call(RpcClient *client, const char *method, const JsonWriter *params, const int *fds,
                    size_t fds_count, RpcMessage *ret, Error *reterr);
