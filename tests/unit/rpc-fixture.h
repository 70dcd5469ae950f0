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
        RpcCall *kept[RPC_CALLS_MAX + 1]; /* by the method "keep", NULL of one that is gone */
        size_t kept_count;
        size_t executed; /* calls of any method */
        size_t calls_ended, connections_ended, rooms;
        RpcConnection *last; /* that a request came by */
} Toy;

void toy_start(Toy *toy);
void toy_stop(Toy *toy);

/* Runs the loop until nothing has been ready for some turns. */
void toy_turn(Toy *toy);

/* A connection; the client's end is not blocking, and the caller's to close. */
int toy_connect(Toy *toy);
/* Answers the i-th of the kept calls: {"i": i}. */
void toy_answer(Toy *toy, size_t i);
