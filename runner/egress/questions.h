/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the caller about hosts that no rule names.
 *
 * Theory of operation. If somebody can be asked, the resolver answers every valid name with the
 * IPv4 address that stands for it, and looks nothing up outside. So no label of a name that nobody
 * has allowed leaves the host. A connection to such an address waits, and holt gets a question with
 * its name and port. Connections to the same name and port share the question.
 *
 * Before holt answers yes, it grants what the connection needs (grants.h). The waiting connections
 * are then judged again, the newest first, because a program may have given up an older one. After
 * no, later connections to this name and port are refused without a question. A question without an
 * answer ends at its deadline. Programs inside can cause questions, so their number is limited. */
#pragma once

#include "egress/egress.h"

struct Connection;

enum {
        QUESTIONS_OPEN_MAX = 8,
        QUESTIONS_BURST = 32,         /* Questions that may be asked at once... */
        QUESTIONS_USEC = 60000000,    /* ...and the usec after which one more may follow. */
        QUESTIONS_REFUSED_MAX = 1024, /* Refused names and ports that are remembered. */
};

/* The setting and command EGRESS_ASK: one of its words. Returns 0 or -ENOMEM; -EINVAL for another
 * word. */
int questions_set(Egress *egress, const char *value);
/* The command EGRESS_ANSWER. Ignores questions that are over. */
void questions_answer(Egress *egress, const char *value);

/* Whether holt can be asked about a connection to a name that no rule names. If not, *ret is set if
 * that is the reason for the refusal. */
bool questions_take_name(const Egress *egress, const char *name, EgressReason *ret);
/* Lets the connection, which no rule allows, wait for an answer. Returns false if it is to be
 * refused, and sets *ret if there is another reason than before. */
bool questions_ask(struct Connection *c, EgressReason *ret);
/* Call it when the connection ends, whether or not it still waits for an answer. */
void question_leave(struct Connection *c);
