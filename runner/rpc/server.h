/* SPDX-License-Identifier: Apache-2.0 */
/* JSON-RPC 2.0 (jsonrpc.org), one object a line, over a stream.
 *
 * Theory of operation. A connection reads lines of at most RPC_LINE_MAX bytes; a longer one is
 * answered with an error and skipped to its end, and what follows is served as before. Each line is
 * one request (no batches). The method is looked up in the server's table, its parameters are
 * checked by the table, and its function is called; it answers at once or keeps the call and
 * answers later. A request without an id is a notification: executed, and never answered. File
 * descriptors that come by SCM_RIGHTS with a line's bytes belong to that request; who sends some
 * has that line alone in the message, for of several they are the last one's.
 *
 * What goes out is queued, never waited for. A client that does not read gets no more notifications
 * from RPC_QUEUE_SOFT bytes on (rpc_notify() says so, and its subscriber counts what it drops), and
 * no more of its requests are read until it does. An answer to what it has asked before, if it may
 * be large, is not made until then (rpc_call_has_room()); what is made all the same past
 * RPC_QUEUE_MAX is answered by an error where it is larger than RPC_ANSWER_SMALL: what has been
 * done, and takes no more to say, is said. So is what would be answered by more than
 * RPC_ANSWER_MAX: how much a command prints, and of what, is an attacker's word, and must not end
 * the connection. A client that has closed its writing end gets what is still to be answered. Every
 * byte that comes in is as an attacker's.
 *
 * Each connection has its turn: a few of its requests, and no more of them once they have taken
 * RPC_TURN_TIME together; then everybody else has theirs.
 *
 * The server may ask as well (rpc_request()); an answer that comes in is an object with result or
 * error and no method. One that nobody waits for is dropped.
 *
 * A connection never ends, and so nobody is told of an end, below rpc_reply(), rpc_fail() or
 * rpc_notify(): the loop does it. */
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
        RPC_LINE_MAX = 1 << 20,      /* bytes of a request; JSON_SIZE_MAX */
        RPC_QUEUE_SOFT = 1 << 20,    /* bytes */
        RPC_QUEUE_ASKED = 8 << 20,   /* ... of a client that has requests of ours to answer */
        RPC_QUEUE_MAX = 4 << 20,     /* ... past which larger answers are errors */
        RPC_ANSWER_MAX = 32 << 20,   /* bytes of one answer */
        RPC_ANSWER_SMALL = 64 << 10, /* bytes of one that comes however many are not read yet */
        RPC_TURN_TIME = 2000,        /* usec, from which on no other request is begun */
        RPC_FDS_MAX = 4,             /* with one request */
        RPC_CALLS_MAX = 256,         /* of one connection that are not answered yet */
        RPC_CONNECTIONS_MAX = 256,   /* of a server */
        RPC_PROOF_TIME = HOLT_WAIT(5000000), /* usec */
};

typedef struct RpcServer RpcServer;
typedef struct RpcConnection RpcConnection;
typedef struct RpcRequest RpcRequest; /* one of the server's own */

/* methods  borrowed.
 * data     handed to every function.
 *
 * 0 or -ENOMEM. */
int rpc_server_new(Loop *loop, const RpcMethod *methods, size_t methods_count, void *data,
                   RpcServer **ret, Error *reterr);
/* With all its connections and calls, whose owners are told. Not from a method's function or
 * another of the server's callbacks: loop_stop() first. NULL is legal; returns NULL. */
RpcServer *rpc_server_free(RpcServer *server);

/* How a server learns that a client is in its own user namespace (rpc/peer.h). */
typedef enum RpcPeers {
        RPC_PEERS_LOOK,  /* the server looks at the client's process */
        RPC_PEERS_PROVE, /* the client sends a proof first, within RPC_PROOF_TIME */
} RpcPeers;

/* Accepts on fd, a listening unix socket, which the server owns from now on, clients of its own
 * user namespace whose SO_PEERCRED is uid or root. 0 or a negative errno. Once for a server. */
int rpc_server_listen(RpcServer *server, int fd, uid_t uid, RpcPeers peers, Error *reterr);
/* Accepts nobody any more; who has connected and was not accepted yet is told by ECONNRESET. */
void rpc_server_deafen(RpcServer *server);
/* Serves in_fd and out_fd, which may be the same: owned, but the caller's still when it fails. They
 * may be sockets, pipes, terminals or files. 0 or a negative errno. */
int rpc_server_add(RpcServer *server, int in_fd, int out_fd, RpcConnection **ret, Error *reterr);
size_t rpc_server_connections(const RpcServer *server);
/* What clients have still to get: requests that are not answered yet, and one more for each client
 * that has lines to read or to be read. */
size_t rpc_server_owed(const RpcServer *server);
/* Called when a connection has ended and before it is freed: whoever has subscribed for it, or owns
 * something by it, lets go. Its calls are gone by then: no one is left to answer. */
void rpc_server_on_end(RpcServer *server, void (*fn)(RpcConnection *connection, void *data));

/* Called once for every request that has come as far as its method's function, before its answer
 * leaves: error is NULL for a result. Where the connection has ended before there was one, it is
 * ECANCELED. */
void rpc_server_on_answer(RpcServer *server,
                          void (*fn)(RpcCall *call, const Error *error, void *data));

/* Adds the hints of the command line to errors (rpc/hints.h): for a server whose clients are holt's
 * own verbs. */
void rpc_server_tell_commands(RpcServer *server);

/* --- in a method's function --- */

RpcConnection *rpc_call_connection(const RpcCall *call);
const RpcMethod *rpc_call_method(const RpcCall *call);
/* Whether its client has gone, which the loop may not have seen yet. */
bool rpc_call_is_gone(const RpcCall *call);
/* Whether an answer that may be large is to be made now: not while its client leaves
 * RPC_QUEUE_SOFT bytes unread, for it would only wait in memory. on_room says when that is over. */
bool rpc_call_has_room(const RpcCall *call);
/* The same of a notification, before it is made. */
bool rpc_has_room(RpcConnection *connection);
/* Reads nothing more of the client, until that is taken back or the client hangs up: for a server
 * that hands on what it reads faster than that is taken. */
void rpc_hold(RpcConnection *connection, bool hold);
/* When it came, in milliseconds since the epoch. */
uint64_t rpc_call_started_ms(const RpcCall *call);

/* Parameters, by names of the method's table (another is a programmer's mistake). NULL, or
 * otherwise, where the request has none. They last until the call is answered. An RPC_PATH is given
 * as its bytes; if memory is out while it is decoded, it is "", which names no file. */
const char *rpc_string(const RpcCall *call, const char *name);
bool rpc_bool(const RpcCall *call, const char *name, bool otherwise);
uint64_t rpc_uint(const RpcCall *call, const char *name, uint64_t otherwise);
bool rpc_has(const RpcCall *call, const char *name);
/* An RPC_OBJECT, as it is. */
const struct JsonValue *rpc_object(const RpcCall *call, const char *name);
/* Copies the items of an RPC_STRINGS, or each member of an RPC_MAP as "NAME=VALUE". 0 or -ENOMEM.
 */
int rpc_strings(const RpcCall *call, const char *name, StrList *ret, Error *reterr);
/* The parameters as one line of JSON, for the history: a string longer than 1 KiB is cut there, and
 * of arrays and maps so many items are left out, for one "...", that all has less than 48 KiB. NULL
 * when memory is out. Owned by the caller. */
char *rpc_params_text(const RpcCall *call);
/* Writes the parameters but the one called except as members, for whoever hands a request on. */
void rpc_write_params(const RpcCall *call, const char *except, JsonWriter *w);
/* Takes the i-th fd that came with the request: the caller owns it then. FD_NONE where there is
 * none. */
int rpc_take_fd(RpcCall *call, size_t i);

/* Whoever keeps a call to answer it later has to know when its connection ends first: fn is called
 * then, and the call, which is not to be answered any more, is freed after it. One at most. */
void rpc_call_on_end(RpcCall *call, void (*fn)(RpcCall *call, void *data), void *data);

/* The answer: an object is open in the writer that rpc_result() returns, which rpc_reply() closes
 * and sends. The call is freed. */
JsonWriter *rpc_result(RpcCall *call);
void rpc_reply(RpcCall *call);
/* Answers with an empty object. */
void rpc_reply_empty(RpcCall *call);
/* Ends the call, whose answer is to be sent when the server is no more and what is left of its
 * process has come to its end; the call is freed. NULL when memory or fds are out, or the client
 * has not taken yet what came before: it sees the end of its connection instead. */
typedef struct RpcLast RpcLast;
RpcLast *rpc_reply_last(RpcCall *call);
/* To add members to its result, or NULL: so few that the socket takes them at once. */
JsonWriter *rpc_last_result(RpcLast *last);
/* Sends it, without waiting, and frees it. NULL is legal; returns NULL. */
RpcLast *rpc_last_send(RpcLast *last);
/* rpc_reply() with fds, RPC_FDS_MAX at most, which stay the caller's; the client gets them with the
 * line. An error is answered instead where fds can't be sent: over a pipe, or to a client that
 * leaves too many unread. */
void rpc_reply_fds(RpcCall *call, const int *fds, size_t count);
/* An error object: code by error's kind, error's text as the message, and in data name, kind, errno
 * (a name or null), hint (the cure or null) and for a layer its name. Frees the call. */
void rpc_fail(RpcCall *call, const Error *error);

/* --- notifications --- */

/* Sends {"jsonrpc": "2.0", "method": method, "params": PARAMS}; params is the text of one object,
 * not pretty. 0, -EAGAIN when the client's queue is past RPC_QUEUE_SOFT or the client is gone,
 * -ENOMEM. */
int rpc_notify(RpcConnection *connection, const char *method, const JsonWriter *params);
/* Called once each time when the queue has got shorter than half of RPC_QUEUE_SOFT after an
 * -EAGAIN, or after there was no room. */
void rpc_server_on_room(RpcServer *server, void (*fn)(RpcConnection *connection, void *data));

/* The same for what must not be lost, and is little and bounded by what was said before: refused
 * never. 0 or -ENOMEM. */
int rpc_tell(RpcConnection *connection, const char *method, const JsonWriter *params);

/* --- requests of the server's own --- */

/* What a client has answered. */
typedef struct RpcAnswer {
        const struct JsonValue *result; /* NULL of an error */
        const struct JsonValue *error;  /* the error; NULL where no answer came */
        const char *why;                /* of an error, for people */
} RpcAnswer;
/* All is borrowed. The request is gone. */
typedef void (*RpcAnswerFn)(void *data, const RpcAnswer *answer);

/* Sends a request, whose id is "t1", "t2", ...; params as above. fn is called once, with the answer
 * or when the connection ends, unless it is cancelled before; never from in here. 0; -EPIPE when
 * the client is gone, -EAGAIN when it does not read (on_room says when it does again), -EBUSY when
 * RPC_CALLS_MAX are not answered yet; -ENOMEM. */
int rpc_request(RpcConnection *connection, const char *method, const JsonWriter *params,
                RpcAnswerFn fn, void *data, RpcRequest **ret);
/* Its answer is dropped when it comes. NULL is legal; returns NULL. */
RpcRequest *rpc_request_cancel(RpcRequest *request);
