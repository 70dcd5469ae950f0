/* SPDX-License-Identifier: Apache-2.0 */
/* What server.c, connection.c and call.c share. Nobody else includes it.
 *
 * A connection is only freed from its own events, never below rpc_reply() or rpc_notify(): whoever
 * calls those is in the midst of something. Until then it is broken, and takes nothing any more. */
#pragma once

#include "base/json.h"
#include "rpc/input.h"
#include "rpc/peer.h"
#include "rpc/queue.h"
#include "rpc/server.h"

enum {
        RPC_PENDING_MAX = 4 << 20, /* bytes of one connection's requests that are not answered */
        RPC_NAME_MAX = 1024,       /* bytes of a key in an RPC_MAP */
        /* bytes in a queue, past which the connection ends: one answer of any size behind others,
         * and small ones or errors to all that it has asked, are less */
        RPC_QUEUE_END = RPC_QUEUE_MAX + RPC_ANSWER_MAX + RPC_CALLS_MAX * RPC_ANSWER_SMALL +
                        (4 << 20),
};

struct RpcServer {
        Loop *loop;
        const RpcMethod *methods;
        size_t methods_count;
        void *data;
        void (*on_end)(RpcConnection *connection, void *data);
        void (*on_room)(RpcConnection *connection, void *data);
        void (*on_answer)(RpcCall *call, const Error *error, void *data);
        RpcConnection *connections;
        size_t connections_count;
        bool tells_commands;
        int listen_fd; /* owned */
        uid_t uid;
        RpcPeers peers;
        PeerNamespace own; /* the server's */
        LoopWatch *listen_watch;
        LoopTimer *listen_again; /* when there are fds again */
};

struct RpcConnection {
        RpcServer *server;
        RpcConnection *previous, *next;
        int in_fd, out_fd; /* owned; the same for a socket */
        bool passes_fds;
        LoopWatch *in_watch;  /* NULL of what epoll(7) does not take, and after its end */
        LoopWatch *out_watch; /* NULL where in_watch does for both */
        LoopTimer *again;     /* what is to be done without an event */
        RpcInput input;
        RpcQueue queue;
        RpcCall *calls; /* not answered yet */
        size_t calls_count, calls_bytes;
        RpcRequest *requests; /* of our own, not answered yet */
        size_t requests_count;
        uint64_t last_request;
        uint64_t prove_until; /* time_now_usec(); 0 for a client that need not, or has */
        bool more;            /* the framing may have more lines */
        bool eof;             /* no more bytes come */
        bool broken;          /* nothing can be sent any more */
        bool room_wanted;     /* a notification was refused */
        bool held;            /* rpc_hold() */
        bool large;           /* it has used much memory since it was idle */
        bool working;         /* in one of its own events, which settles in the end */
};

int rpc_connection_new(RpcServer *server, int in_fd, int out_fd, RpcConnection **ret,
                       Error *reterr);
/* Nothing of the client's is read before it has proved who it is. */
void rpc_connection_want_proof(RpcConnection *c);
/* With its calls: tells their owners and the server's. */
void rpc_connection_end(RpcConnection *c);
/* Waits for what is to be waited for now; after whatever may have changed it. */
void rpc_connection_settle(RpcConnection *c);
/* Sends one line. 0, and the connection is broken if it could not; with fds a negative errno when
 * nothing was sent: it may be due to them alone (EMFILE, ETOOMANYREFS), and a line without them
 * will tell. */
int rpc_connection_send(RpcConnection *c, const char *bytes, size_t length, const int *fds,
                        size_t count);

struct RpcCall {
        RpcConnection *connection;
        RpcCall *previous, *next;
        const RpcMethod *method;
        JsonDocument *document;
        const JsonValue *id;     /* NULL of a notification */
        const JsonValue *params; /* NULL where it has none */
        StrList *paths;          /* that rpc_string() has decoded: decoded, of a const call too */
        StrList decoded;
        size_t bytes;        /* of its line */
        uint64_t started_ms; /* since the epoch */
        bool told;           /* on_answer has been */
        RpcFds fds;
        JsonWriter answer;
        bool ended; /* its connection is gone */
        void (*on_end)(RpcCall *call, void *data);
        void *on_end_data;
};

/* Executes a line, or answers why not, or takes it as an answer; takes the fds. */
void rpc_call_line(RpcConnection *c, const FramingLine *line, RpcFds *fds);
/* Calls on_end and frees it. */
void rpc_call_end(RpcCall *call);

/* Takes an object that is an answer, to a request that is waited for or not; false of another. */
bool rpc_take_answer(RpcConnection *c, const JsonValue *root);
/* The same of a line that begins so and can't be read; why, for the request's owner. */
bool rpc_take_bad_answer(RpcConnection *c, const char *head, const char *why);
/* No answer will come any more: tells their owners. */
void rpc_requests_end(RpcConnection *c);

/* 0, or an error for the client with the path of the parameter, which the caller frees. params may
 * be NULL. */
int rpc_check_params(const RpcMethod *method, const JsonValue *params, char **ret_path,
                     Error *reterr);

/* Sends an error. id may be NULL: null. name 0 is the name of the error's kind. path may be NULL.
 */
void rpc_send_error(RpcConnection *c, const JsonValue *id, RpcErrorName name, const Error *error,
                    const char *path);
/* The same line, for whoever is not served at all. Freed by json_write_clear(). */
void rpc_write_error(JsonWriter *w, const JsonValue *id, RpcErrorName name, const Error *error,
                     const char *path, bool commands);
