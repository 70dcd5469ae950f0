/* SPDX-License-Identifier: Apache-2.0 */
/* Answers questions about hosts (network.ask) for holt exec --ask, on the caller's terminal. */
#pragma once

#include "rpc/client.h"

typedef struct ExecAsking ExecAsking;

/* Opens the terminal, and tells the keeper that this client answers. Without a terminal, *ret is
 * NULL, and nobody is asked. client is borrowed. Returns 0 or a negative errno. */
int exec_asking_new(RpcClient *client, ExecAsking **ret, Error *reterr);
/* Accepts NULL, like all functions below. Returns NULL. */
ExecAsking *exec_asking_free(ExecAsking *asking);
/* Takes a message if it is a question. */
void exec_asking_take(ExecAsking *asking, const RpcMessage *message);
/* Whether a question is shown. Then nothing may pass between the command and the terminal. */
bool exec_asking_shown(const ExecAsking *asking);
/* Returns the descriptor to poll for input, or FD_NONE. */
int exec_asking_fd(const ExecAsking *asking);
/* Returns the milliseconds until exec_asking_pump() must be called, or -1. */
int exec_asking_wait(const ExecAsking *asking);
/* Reads an answer if the descriptor has input, and ends a question that is over. If the answer is
 * Ctrl-C, calls interrupt before the program's connection is refused, so that the program cannot go
 * on between the two. */
void exec_asking_pump(ExecAsking *asking, bool input, void (*interrupt)(void *data), void *data);
