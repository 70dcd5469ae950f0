/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that http.c (connections), http-session.c (children) and http-queue.c share. */
#pragma once

#include <sys/types.h>

#include "base/json-write.h"
#include "base/json.h"
#include "base/loop.h"
#include "mcp/http-head.h"
#include "mcp/http.h"
#include "rpc/framing.h"

enum {
        HTTP_QUEUE_MAX = 8 << 20, /* bytes that wait for a client or a child */
        /* If no more than this waits, one message of any length can be added. */
        HTTP_QUEUE_SMALL = 64 << 10,
        HTTP_LINE_MAX = 32 << 20, /* bytes of a message of a child */
};

/* Bytes that wait for room in a socket. */
typedef struct HttpQueue {
        char *data;
        size_t length, at;
} HttpQueue;

/* Returns 0, -ENOMEM, or -ENOBUFS past HTTP_QUEUE_MAX (see
 * HTTP_QUEUE_SMALL). */
int http_queue_add(HttpQueue *queue, const void *data, size_t length);
/* Sends what fits. Returns 0, or a negative errno of send(2). */
int http_queue_send(HttpQueue *queue, int fd);
bool http_queue_waits(const HttpQueue *queue);
void http_queue_clear(HttpQueue *queue);

typedef struct HttpSession {
        struct HttpSession *next;
        HttpServer *server;
        char id[HTTP_SESSION_ID + 1];
        pid_t pid;
        int fd;
        LoopWatch *watch;
        Framing in;
        HttpQueue out;
        uint64_t used_at; /* usec of time_now_usec() */
} HttpSession;

typedef enum HttpState {
        HTTP_READING,
        HTTP_STREAMING, /* events are sent as they come */
        HTTP_ENDING,    /* the response is complete */
} HttpState;

typedef struct HttpConnection {
        struct HttpConnection *next;
        HttpServer *server;
        int fd;
        LoopWatch *watch;
        LoopTimer *timer;
        HttpState state;
        char *in;
        size_t in_length, head_length; /* head_length: 0 until the head is complete */
        HttpHead head;
        HttpQueue out;
        HttpSession *session; /* set for a stream */
        JsonWriter id;        /* id of the request that awaits its reply; empty for a GET */
} HttpConnection;

struct HttpServer {
        McpSettings settings;
        int fd;
        uint16_t port;
        char token[HTTP_TOKEN_MAX + 1];
        Loop *loop;
        HttpConnection *connections;
        HttpSession *sessions;
        unsigned connections_count, sessions_count;
        LoopWatch *watch;
};

/* --- children --- */

/* Starts a child. Returns 0 or a negative errno. */
int http_session_new(HttpServer *server, HttpSession **ret);
HttpSession *http_session_find(const HttpServer *server, const char *id);
/* Sends a message, as one line. Returns 0 or a negative errno. */
int http_session_send(HttpSession *session, const JsonValue *message);
/* Ends the child, and the streams of the session. */
void http_session_free(HttpSession *session);

/* --- connections --- */

/* Passes on a message of the child. data: the HttpSession. */
void http_take_message(void *data, const FramingLine *line);
/* The session ends: so do its streams. */
void http_end_streams(const HttpSession *session);
