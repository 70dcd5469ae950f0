/* SPDX-License-Identifier: Apache-2.0 */
/* A server with a toy table of methods, and the other ends of its connections. */
#pragma once

#include "base/loop.h"
#include "rpc/server.h"

extern const RpcMethod toy_methods[];
extern const size_t toy_methods_count;

typedef struct Toy {
        Loop *loop;
        LoopTimer *stop;
        RpcServer *server;
        RpcCall *kept[RPC_CALLS_MAX +
                      1]; /* calls kept by the method "keep"; NULL for one that is gone */
        size_t kept_count;
        size_t executed; /* calls of any method */
        size_t calls_ended, connections_ended, rooms;
        RpcConnection *last; /* the connection of the last request */
} Toy;

#define REQUEST(method, params)                                                                    \
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" params "}\n"
#define NOTIFICATION(method, params)                                                               \
        "{\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"params\":" params "}\n"
#define RESULT(result) "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" result "}\n"
#define SAY_A REQUEST("toy.echo", "{\"text\":\"a\"}")
#define SAID_A RESULT("{\"text\":\"a\",\"loud\":true,\"times\":7,\"has_times\":false}")
#define KEEP REQUEST("toy.keep", "{}")
#define FDS REQUEST("toy.fds", "{}")
#define FDS_NOTIFICATION NOTIFICATION("toy.fds", "{}")

/* Setup and teardown for cmocka, for each test. Teardown fails if an fd is left open. */
extern Toy toy;
int toy_setup(void **state);
int toy_teardown(void **state);

/* Returns the number of open fds of this process. */
size_t open_fds(void);

/* Runs the loop until nothing has been ready for some turns. */
void toy_turn(void);
/* One turn of the loop only. */
void toy_turn_once(void);

/* Connects. The client's end does not block, and the caller closes it. */
int toy_connect(void);
/* Answers the i-th kept call with {"i": i}. */
void toy_answer(size_t i);

/* Writes all of text, at once. */
void say(int fd, const char *text);
/* Writes all of text, and turns the loop meanwhile. */
void say_slowly(int fd, const char *text, size_t length);
/* Reads everything that arrives, as a string that is valid until the next call. */
const char *hear(int fd);
/* Reads the same and drops it; returns the number of bytes. */
size_t drain(int fd);
/* Whether the server has closed it. */
bool is_closed(int fd);
/* Closes the last client's end; then the server has no connection. */
void disconnect(int fd);
