/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of holt-egress (egress/questions.h) in a single run: shows them on the caller's
 * terminal, one after another, and grants what the answer allows. */
#pragma once

#include "network/network.h"
#include "outcome/outcome.h"

typedef struct Asking Asking;

/* Whether there is a terminal on which somebody can be asked. */
bool asking_possible(void);
/* Opens the terminal. network is borrowed. Returns NULL if there is none, and tells holt-egress
 * that nobody can be asked. */
Asking *asking_new(Network *network);
/* Ends a question that is shown. Accepts NULL, like all functions below. Returns NULL. */
Asking *asking_free(Asking *asking);
/* Handles an event of holt-egress: a NetworkFn. */
void asking_on_event(void *asking, const EgressEvent *event, const NetDenial *first);
/* Whether a question is shown. Then nothing may pass between the command and the terminal. */
bool asking_shown(const Asking *asking);
/* Returns the descriptor to poll for input, or FD_NONE. */
int asking_fd(const Asking *asking);
/* Reads an answer. Call it if that descriptor has input. If the answer is Ctrl-C, calls interrupt
 * before the program's connection is refused, so that the program cannot go on between the two. */
void asking_pump(Asking *asking, void (*interrupt)(void *data), void *data);
