/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of holt mcp and of holt mcp --wrap. Both talk to a client over stdin and stdout, one
 * JSON object a line, and to the keeper of a session. */
#pragma once

#include "base/error.h"
#include "base/json-write.h"
#include "rpc/client.h"
#include "rpc/framing.h"

typedef struct ClientLoopFns {
        /* The client has sent a line. */
        void (*on_line)(void *data, const FramingLine *line);
        /* The client has closed stdin. */
        void (*on_close)(void *data);
        /* The keeper has sent a message. error: set if that is a reply without a result. */
        void (*on_message)(void *data, const RpcMessage *message, const Error *error);
        /* The connection to the keeper has failed, and was closed. */
        void (*on_lost)(void *data, const Error *error);
        /* Is called before each wait. Returns the time until it must be called again in
         * milliseconds, or -1. NULL: no time matters. */
        int (*before_wait)(void *data);
} ClientLoopFns;

typedef struct ClientLoop {
        const ClientLoopFns *fns;
        void *data;
        RpcClient *keeper; /* NULL until client_loop_connect(). */
        bool deaf;         /* The client is not read now. */
        bool ended;        /* The server ends. */
        bool signalled;    /* A signal has ended it. */
        int signal_fd;
        Framing in;
} ClientLoop;

/* Blocks the signals that end a server, and returns a signalfd for them, or a negative errno. Ends
 * of pipes are errors of write(2) from now on. */
int client_loop_signals(Error *reterr);

/* line_max: bytes of the client's lines. Returns 0 or a negative errno. */
int client_loop_init(ClientLoop *loop, const ClientLoopFns *fns, void *data, size_t line_max,
                     Error *reterr);
/* Runs until loop->ended, or a signal. Returns 0 or a negative errno. */
int client_loop_run(ClientLoop *loop, Error *reterr);
void client_loop_clear(ClientLoop *loop);

/* Connects to the keeper, and starts it if needed. Returns 0 or a negative errno. */
int client_loop_connect(ClientLoop *loop, const char *session, Error *reterr);
/* Handles the messages that have come from the keeper. */
void client_loop_read_keeper(ClientLoop *loop);
/* Sends the finished object to the client, even if that is slow. On failure, the server ends. */
void client_loop_send(ClientLoop *loop, JsonWriter *w);

/* Reads once from fd, and passes whole lines to fn. Returns false at the end of the stream, or if
 * memory is out. */
bool client_loop_read_lines(int fd, Framing *in, void (*fn)(void *data, const FramingLine *line),
                            void *data);
