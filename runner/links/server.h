/* SPDX-License-Identifier: Apache-2.0 */
/* The state of holt-links, and its requests.
 *
 * Theory of operation. holt-links speaks HTTP/1.1 on one port of the host's loopback. It starts
 * from a sealed memory file, below a keeper that is confined already, so it never has more rights
 * than that. It opens no file and makes no connection: the keeper opens the file of a valid link,
 * and sends its descriptor. The keeper looks up each link in its own table. So an attacker who
 * takes over holt-links still cannot read another file.
 *
 * Unlike holt-gateway, it does not use libmicrohttpd. A confined process cannot load libraries, and
 * a process that starts earlier would cost memory in every session, with or without links. One
 * request for each connection is enough here, and needs little code: wire/http-head.c reads the
 * head.
 *
 * A request goes through these states:
 *
 *     READING -> OPENING -> SENDING -> ENDING
 *                      \-> RECEIVING -> STORING -> SENDING -> ENDING
 *
 * If REQUESTS_MAX connections are open, a new one takes the place of the oldest that has not shown
 * a valid link. So strangers cannot keep others out.
 *
 * In OPENING and STORING, holt-links waits for the keeper. In ENDING, it waits until the client has
 * read the response; closing earlier would make the kernel drop it. Any failure is a response from
 * SENDING on, or a closed connection if a response has begun.
 *
 * Code inside may change a file while it is served. The length in the head is the size at the
 * start. If the file shrinks, the connection is closed early, so that the client sees the loss; if
 * it grows, the new bytes are left out. */
#pragma once

#include "base/loop.h"
#include "base/wait.h"
#include "links/chunks.h"
#include "links/protocol.h"
#include "wire/http-head.h"

enum {
        REQUESTS_MAX = 64,
        REQUEST_HEAD_MAX = 8192,                /* Bytes of a request's head. */
        REQUEST_OUT_MAX = 4096,                 /* Bytes of a response without a file. */
        REQUEST_HEAD_TIME = HOLT_WAIT(10000),   /* Milliseconds for a whole head. */
        REQUEST_SILENT_TIME = HOLT_WAIT(30000), /* Milliseconds without any byte. */
        REQUEST_ENDING_TIME = HOLT_WAIT(2000),  /* Milliseconds for a client to close. */
};

typedef struct Server Server;

typedef enum RequestState {
        REQUEST_READING,
        REQUEST_OPENING,
        REQUEST_SENDING,
        REQUEST_RECEIVING,
        REQUEST_STORING,
        REQUEST_ENDING,
} RequestState;

typedef struct Request {
        struct Request *next;
        Server *server;
        RequestState state;
        int fd, file_fd; /* file_fd: FD_NONE unless it is open. */
        LoopWatch *watch;
        LoopTimer *timer;
        uint32_t number;
        bool opened;    /* The keeper knows the request, and must learn of its end. */
        bool head_only; /* HEAD */
        bool expects;   /* The client waits for "100 Continue". */
        bool has_range;
        bool chunked; /* The upload is in chunks; then left is 1 until the last one. */
        ChunkReader chunks;
        Link link;
        unsigned status;              /* The code of the response; 0 before it. */
        uint64_t start, left, length; /* The part of the file; bytes still to move; of the body. */
        uint64_t most;                /* Bytes that an upload may have. */
        uint64_t moved, flushed;      /* Bytes of the body so far. */
        size_t filled, seen;          /* Bytes in head; the offset after the head. */
        size_t out_length, out_at;
        HttpText range;
        char head[REQUEST_HEAD_MAX];
        char out[REQUEST_OUT_MAX];
} Request;

struct Server {
        Loop *loop;
        LinksSettings settings;
        int control_fd, listen_fd;
        LoopWatch *control_watch, *listen_watch;
        Request *requests;
        unsigned requests_count;
        uint32_t last_number;
        uint64_t refused_told; /* Bits of the refusals that the keeper knows. */
};

/* Watches both sockets. Returns 0 or a negative errno. */
int server_watch(Server *server, Error *reterr);
/* Sends a message to the keeper. Returns whether there was room. */
bool server_tell(Server *server, const LinksMessage *message);

/* --- request.c --- */

/* Takes over fd. */
void link_request_new(Server *server, int fd);
/* Ends the request at once, and tells the keeper. */
void link_request_free(Request *request);
/* Waits for these events of epoll(7), and ms milliseconds at most. */
void link_request_wait(Request *request, RequestState state, uint32_t events, uint64_t ms);
/* Continues with the keeper's answer. file_fd, or FD_NONE, is taken over. */
void link_request_answered(Request *request, const LinksAnswer *answer, int file_fd);

/* --- judge.c --- */

/* Reads the whole head. Returns 0, or the status of the refusal. */
unsigned link_request_judge(Request *request);

/* --- response.c --- */

/* Begins a response without a file. */
void link_request_respond(Request *request, unsigned status);
/* Begins the response with a file of this size. */
void link_request_respond_file(Request *request, uint64_t size);

/* --- body.c --- */

/* Moves bytes until the socket or a fair share ends. They may free the request. */
void link_request_send(Request *request);
void link_request_receive(Request *request);
/* Takes bytes of an upload, which it may change. Returns false after a failure, with the response
 * begun. */
bool link_request_take(Request *request, char *data, size_t length);
