/* SPDX-License-Identifier: Apache-2.0 */
/* JSON-RPC 2.0 (jsonrpc.org) over a stream, with one object per line.
 *
 * Theory of operation. A connection reads lines of at most RPC_LINE_MAX bytes. A longer line gets
 * an error and is skipped to its end; the following lines are served as usual. Each line is one
 * request; batches are not supported. The server finds the method in its table, checks the
 * parameters by the table, and calls the method's function. The function replies at once, or keeps
 * the call and replies later. A request without an id is a notification: it is executed and gets no
 * reply. File descriptors that come by SCM_RIGHTS with bytes of a line belong to that request. If
 * one sendmsg(2) carries several lines, its descriptors belong to the last. So a client
 * must send a line with descriptors by itself.
 *
 * Output is queued and never blocks. All input is treated as hostile. So a client that does not
 * read its replies meets these limits:
 *
 * - From RPC_QUEUE_SOFT queued bytes on, it gets no more notifications (rpc_notify() returns
 *   -EAGAIN, and the caller counts the dropped ones). Its further requests are not read, and large
 *   replies to earlier ones are not made (rpc_call_has_room()).
 * - Past RPC_QUEUE_MAX, a reply larger than RPC_ANSWER_SMALL is replaced by an error. A smaller one
 *   is still sent, because it reports completed work and is hardly larger than an error.
 * - A reply larger than RPC_ANSWER_MAX is always replaced by an error. An attacker decides how much
 *   a command prints, and must not be able to end the connection that way.
 *
 * A client that has shut down its writing end still gets its pending replies.
 *
 * Connections take turns. A turn ends after a few requests, or once they have taken RPC_TURN_TIME
 * together.
 *
 * The server can send requests, too (rpc_request()). An incoming object with result or error and
 * without a method is a reply to one. A reply that no request awaits is dropped.
 *
 * A connection never ends within rpc_reply(), rpc_fail() or rpc_notify(). It ends in the loop,
 * which then calls on_end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/json-write.h"
#include "base/loop.h"
#include "base/strings.h"
#include "base/wait.h"
#include "rpc/table.h"

enum {
        RPC_LINE_MAX = 1 << 20,    /* bytes of a request; JSON_SIZE_MAX */
        RPC_QUEUE_SOFT = 1 << 20,  /* queued bytes; from here on, the client must read first */
        RPC_QUEUE_ASKED = 8 << 20, /* RPC_QUEUE_SOFT while a request of the server is unanswered */
        RPC_QUEUE_MAX = 4 << 20,   /* queued bytes; past it, larger replies become errors */
        RPC_ANSWER_MAX = 32 << 20, /* bytes of one reply */
        RPC_ANSWER_SMALL = 64 << 10, /* bytes of a reply that is sent past RPC_QUEUE_MAX, too */
        RPC_TURN_TIME = 2000,        /* usec of a turn; after it, no request is started */
        RPC_FDS_MAX = 4,             /* file descriptors in one message */
        RPC_CALLS_MAX = 256,         /* unanswered requests of one connection */
        RPC_CONNECTIONS_MAX = 256,   /* connections of a server */
        RPC_PROOF_TIME = HOLT_WAIT(5000000), /* usec that a client has to send its proof */
};

typedef struct RpcServer RpcServer;
typedef struct RpcConnection RpcConnection;
typedef struct RpcRequest RpcRequest; /* a request that the server has sent */

/* Makes a server without connections.
 *
 * methods  borrowed until rpc_server_free().
 * data     argument of all functions of methods, and of all callbacks.
 *
 * 0 or -ENOMEM. */
int rpc_server_new(Loop *loop, const RpcMethod *methods, size_t methods_count, void *data,
                   RpcServer **ret, Error *reterr);
/* Frees the server with its connections and calls, and tells their owners. A method's function or a
 * callback of the server must not call this; it calls loop_stop() instead. NULL is legal; returns
 * NULL. */
RpcServer *rpc_server_free(RpcServer *server);

/* How a server checks that a client is in its own user namespace (rpc/peer.h). */
typedef enum RpcPeers {
        RPC_PEERS_LOOK,  /* the server looks at the client's process */
        RPC_PEERS_PROVE, /* the client first sends a proof, within RPC_PROOF_TIME */
} RpcPeers;

/* Accepts clients on fd, a listening unix socket that the server then owns. A client must be in the
 * server's user namespace, and SO_PEERCRED must show uid or root. Call it once per server. Returns
 * 0 or a negative errno. */
int rpc_server_listen(RpcServer *server, int fd, uid_t uid, RpcPeers peers, Error *reterr);
/* Closes the listening socket. Clients in its backlog get ECONNRESET. */
void rpc_server_deafen(RpcServer *server);
/* Serves a client on in_fd and out_fd, which may be the same. They may be sockets, pipes, terminals
 * or files. The server owns them unless this fails. Returns 0 or a negative errno. */
int rpc_server_add(RpcServer *server, int in_fd, int out_fd, RpcConnection **ret, Error *reterr);
/* The number of open connections. */
size_t rpc_server_connections(const RpcServer *server);
/* How much work is left: the number of unanswered requests, and one more for each client with
 * unread requests or unsent lines. */
size_t rpc_server_owed(const RpcServer *server);
/* Sets the function that is called when a connection has ended, before it is freed. The function
 * releases subscriptions and resources of the connection. The calls have been freed before. */
void rpc_server_on_end(RpcServer *server, void (*fn)(RpcConnection *connection, void *data));

/* Sets the function that is called once for every request that reached its method's function, just
 * before the reply is sent. error is NULL for a result. It is ECANCELED if the connection ended
 * before the reply. */
void rpc_server_on_answer(RpcServer *server,
                          void (*fn)(RpcCall *call, const Error *error, void *data));

/* Adds the hints of the command line to errors (rpc/hints.h), for a server whose clients are holt's
 * own verbs. */
void rpc_server_tell_commands(RpcServer *server);

/* --- in a method's function --- */

RpcConnection *rpc_call_connection(const RpcCall *call);
const RpcMethod *rpc_call_method(const RpcCall *call);
/* Whether the client has closed the connection, even if the loop has not noticed it yet. */
bool rpc_call_is_gone(const RpcCall *call);
/* Whether a large reply should be made now. False while the client leaves RPC_QUEUE_SOFT bytes
 * unread, since the reply would only use memory. on_room is called once there is room. */
bool rpc_call_has_room(const RpcCall *call);
/* The same for a notification. */
bool rpc_has_room(RpcConnection *connection);
/* Stops or resumes reading from the client, for a server that forwards data to a slower reader. The
 * end of the connection is still noticed. */
void rpc_hold(RpcConnection *connection, bool hold);
/* When the request came, in milliseconds since the epoch. */
uint64_t rpc_call_started_ms(const RpcCall *call);

/* These return a parameter by its name, which must be in the method's table. If the request does
 * not have it, they return NULL, or the argument `otherwise`. Strings are valid until the call is
 * answered. An RPC_PATH is returned as decoded bytes; if memory is out, it is "", which names no
 * file. */
const char *rpc_string(const RpcCall *call, const char *name);
bool rpc_bool(const RpcCall *call, const char *name, bool otherwise);
uint64_t rpc_uint(const RpcCall *call, const char *name, uint64_t otherwise);
bool rpc_has(const RpcCall *call, const char *name);
/* Returns an RPC_OBJECT. */
const struct JsonValue *rpc_object(const RpcCall *call, const char *name);
/* Copies the items of an RPC_STRINGS, or the members of an RPC_MAP as "NAME=VALUE". Returns 0 or
 * -ENOMEM. */
int rpc_strings(const RpcCall *call, const char *name, StrList *ret, Error *reterr);
/* Returns the parameters as one line of JSON, for the history. Strings are cut at 1 KiB. The last
 * items of large arrays and maps are replaced by "...", so that the line is shorter than 48 KiB.
 * NULL if memory is out. Owned by the caller. */
char *rpc_params_text(const RpcCall *call);
/* Writes all parameters except one as members, to forward a request. */
void rpc_write_params(const RpcCall *call, const char *except, JsonWriter *w);
/* Returns the i-th fd that came with the request, which the caller then owns, or FD_NONE. */
int rpc_take_fd(RpcCall *call, size_t i);

/* For a caller that keeps the call to reply later: calls fn if the connection ends first. The call
 * must not be answered then, and is freed after fn. At most one fn per call. */
void rpc_call_on_end(RpcCall *call, void (*fn)(RpcCall *call, void *data), void *data);

/* Returns the writer of the reply, in which the result object is open. */
JsonWriter *rpc_result(RpcCall *call);
/* Closes the result, sends the reply and frees the call. */
void rpc_reply(RpcCall *call);
/* Replies with an empty object. */
void rpc_reply_empty(RpcCall *call);
/* Detaches the reply, so that it can be sent after rpc_server_free(), as the last act of the
 * process. Frees the call. NULL if memory or fds are out, or if earlier lines are still unsent;
 * then the client sees the connection end without a reply. */
typedef struct RpcLast RpcLast;
RpcLast *rpc_reply_last(RpcCall *call);
/* Returns the writer of the result, or NULL if last is NULL. Add few fields, so that the socket
 * takes them at once. */
JsonWriter *rpc_last_result(RpcLast *last);
/* Sends the reply without blocking, and frees it. NULL is legal; returns NULL. */
RpcLast *rpc_last_send(RpcLast *last);
/* Like rpc_reply(), and sends duplicates of at most RPC_FDS_MAX fds. If they cannot be sent, the
 * reply is an error: the connection is a pipe, or the client has left too many fds unread. */
void rpc_reply_fds(RpcCall *call, const int *fds, size_t count);
/* Replies with an error and frees the call. The code and data.name follow from the error's kind,
 * and the message is its text. data also has kind, errno (a name or null), hint (the cure or null),
 * and the layer of an ERROR_LAYER. */
void rpc_fail(RpcCall *call, const Error *error);
/* The same, with data.path: the JSON path of the wrong value, such as "$.params.policy.limits". */
void rpc_fail_at(RpcCall *call, const char *path, const Error *error);

/* --- notifications --- */

/* Sends {"jsonrpc": "2.0", "method": method, "params": PARAMS}. params is one JSON object without
 * newlines. 0, -ENOMEM, or -EAGAIN if the client's queue is past RPC_QUEUE_SOFT or the client has
 * disconnected. */
int rpc_notify(RpcConnection *connection, const char *method, const JsonWriter *params);
/* Sets the function that is called when a queue has become shorter than half of RPC_QUEUE_SOFT. It
 * is called once after an -EAGAIN, or after rpc_has_room() or rpc_call_has_room() returned false.
 */
void rpc_server_on_room(RpcServer *server, void (*fn)(RpcConnection *connection, void *data));

/* Like rpc_notify(), and sends even if the queue is past RPC_QUEUE_SOFT. Use it for small
 * notifications that must not be lost, and of which a client can cause only a limited number. 0 or
 * -ENOMEM. */
int rpc_tell(RpcConnection *connection, const char *method, const JsonWriter *params);

/* --- requests of the server's own --- */

/* The reply of a client. All pointers are valid only during the call of RpcAnswerFn. */
typedef struct RpcAnswer {
        const struct JsonValue *result; /* NULL: an error */
        const struct JsonValue *error;  /* the error object; NULL: a result, or no reply came */
        const char *why;                /* text of the error, for people */
} RpcAnswer;
/* The request has been freed before this is called. */
typedef void (*RpcAnswerFn)(void *data, const RpcAnswer *answer);

/* Sends a request. Its id is "t1", "t2" and so on; params is as for rpc_notify(). fn is called
 * once, with the reply or when the connection ends, unless the request is cancelled before. This
 * function itself never calls fn.
 *
 * 0 or -ENOMEM; -EPIPE: the client has disconnected; -EAGAIN: it does not read (on_room follows);
 * -EBUSY: RPC_CALLS_MAX requests are unanswered. */
int rpc_request(RpcConnection *connection, const char *method, const JsonWriter *params,
                RpcAnswerFn fn, void *data, RpcRequest **ret);
/* Frees the request. Its reply is dropped when it comes. NULL is legal; returns NULL. */
RpcRequest *rpc_request_cancel(RpcRequest *request);
