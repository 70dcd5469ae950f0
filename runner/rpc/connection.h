/* SPDX-License-Identifier: Apache-2.0 */
/* Types and functions that the sources of the server share. No other file includes this header.
 *
 * A connection is freed only from its own events, never within rpc_reply() or rpc_notify(), because
 * their callers may still use it. Until then it is marked broken and accepts nothing more. */
#pragma once

#include "base/json.h"
#include "rpc/input.h"
#include "rpc/peer.h"
#include "rpc/queue.h"
#include "rpc/server.h"

enum {
        RPC_PENDING_MAX = 4 << 20, /* bytes of unanswered requests of one connection */
        RPC_NAME_MAX = 1024,       /* bytes of a key in an RPC_MAP */
        /* Bytes in a queue; more end the connection. A full queue, one reply of the largest size
         * and a small reply to every unanswered request still fit. */
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
        bool tells_commands; /* rpc_server_tell_commands() was called */
        int listen_fd;       /* owned */
        uid_t uid;           /* the user that may connect, besides root */
        RpcPeers peers;
        PeerNamespace own; /* user namespace of the server */
        LoopWatch *listen_watch;
        LoopTimer *listen_again; /* resumes accept4(2), which had run out of descriptors */
};

struct RpcConnection {
        RpcServer *server;
        RpcConnection *previous, *next;
        int in_fd, out_fd;    /* owned; the same for a socket */
        bool passes_fds;      /* out_fd is a unix socket */
        LoopWatch *in_watch;  /* NULL after the end of the stream, or if epoll(7) refuses in_fd */
        LoopWatch *out_watch; /* NULL if in_watch watches both directions */
        LoopTimer *again;     /* starts a turn that no event starts */
        RpcInput input;
        RpcQueue queue;
        RpcCall *calls; /* unanswered requests of the client */
        size_t calls_count, calls_bytes;
        RpcRequest *requests; /* unanswered requests of the server */
        size_t requests_count;
        uint64_t last_request; /* number of the newest request of the server; 0: none */
        uint64_t prove_until; /* deadline of the proof in time_now_usec(); 0: no proof is awaited */
        bool more;            /* the framing may have more lines */
        bool eof;             /* the client sends no more bytes */
        bool broken;          /* sending has failed for good */
        bool room_wanted; /* a message was refused because the queue was full; on_room follows */
        bool held;        /* rpc_hold() */
        bool large;       /* it has used much memory since it was idle */
        bool working;     /* an event of its own is running, and calls settle at its end */
};

int rpc_connection_new(RpcServer *server, int in_fd, int out_fd, RpcConnection **ret,
                       Error *reterr);
/* Reads no request before the client has proved its user namespace. */
void rpc_connection_want_proof(RpcConnection *c);
/* Ends the connection and its calls, and tells the owners of both. */
void rpc_connection_end(RpcConnection *c);
/* Updates the events that the loop watches for. Called after every change of the state. */
void rpc_connection_settle(RpcConnection *c);
/* Sends one line.
 *
 * Without fds: always 0; a failure marks the connection broken. With fds: 0, or a negative errno
 * when nothing was sent. The cause may be the fds alone (EMFILE, ETOOMANYREFS), so the caller sends
 * an error without fds next. */
int rpc_connection_send(RpcConnection *c, const char *bytes, size_t length, const int *fds,
                        size_t count);
/* Queues a notification, or a request if id is not NULL. Returns 0 or -ENOMEM. */
int rpc_connection_write(RpcConnection *c, const char *id, const char *method,
                         const JsonWriter *params);

struct RpcCall {
        RpcConnection *connection;
        RpcCall *previous, *next;
        const RpcMethod *method;
        JsonDocument *document;
        const JsonValue *id;     /* NULL: a notification */
        const JsonValue *params; /* NULL: none were sent */
        StrList *paths; /* points to decoded: rpc_string() adds to it, although its call is const */
        StrList decoded;     /* paths that rpc_string() has decoded */
        size_t bytes;        /* length of the request's line */
        uint64_t started_ms; /* since the epoch */
        bool told;           /* on_answer was called */
        RpcFds fds;
        JsonWriter answer;
        bool ended; /* its connection has ended */
        void (*on_end)(RpcCall *call, void *data);
        void *on_end_data;
};

/* Executes a request, replies why it is refused, or hands a reply to its request. Owns the fds. */
void rpc_call_line(RpcConnection *c, const FramingLine *line, RpcFds *fds);
/* Calls on_end, then frees the call. */
void rpc_call_end(RpcCall *call);

/* Handles root if it is a reply, even one that no request awaits. Returns false for any other
 * message. */
bool rpc_take_answer(RpcConnection *c, const JsonValue *root);
/* The same for a line that cannot be parsed. head is its beginning; why is for the request's owner.
 */
bool rpc_take_bad_answer(RpcConnection *c, const char *head, const char *why);
/* Tells the owners of all unanswered requests of the server that no reply will come. */
void rpc_requests_end(RpcConnection *c);

/* Checks params, which may be NULL, by the table of the method. Returns 0, or negative with
 * *reterr; *ret_path is then the JSON path of the wrong parameter, owned by the caller. */
int rpc_check_params(const RpcMethod *method, const JsonValue *params, char **ret_path,
                     Error *reterr);

/* Sends an error. A NULL id is sent as null. Name 0 means the name of the error's kind. path may be
 * NULL. */
void rpc_send_error(RpcConnection *c, const JsonValue *id, RpcErrorName name, const Error *error,
                    const char *path);
/* Writes the same line for a client without a connection. Freed by json_write_clear(). */
void rpc_write_error(JsonWriter *w, const JsonValue *id, RpcErrorName name, const Error *error,
                     const char *path, bool commands);
