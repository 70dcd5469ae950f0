/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/asking.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"
#include "network/asked.h"
#include "streams/question.h"

typedef struct Asking {
        Network *network;
        Question *question;
        NetAskedList asked; /* The first one is shown, or its grant is being carried out. */
        bool granting;      /* The grant of the first one is being carried out. */
        bool decided;       /* holt has told holt-egress to keep the grant. */
        uint32_t once;      /* Number of the last one-time grant. */
} Asking;

static void asking_show(Asking *asking);

bool asking_possible(void) {
        Question *question = question_open();
        const bool possible = question != NULL;

        (void)question_close(question);
        return possible;
}

Asking *asking_new(Network *network) {
        Question *question = question_open();
        Asking *asking = question ? calloc(1, sizeof(*asking)) : NULL;

        if (!asking) {
                (void)network_command(network, EGRESS_ASK, EGRESS_ASK_NOBODY);
                (void)question_close(question);
                return NULL;
        }
        asking->network = network;
        asking->question = question;
        return asking;
}

Asking *asking_free(Asking *asking) {
        if (!asking)
                return NULL;
        question_hide(asking->question, "the command has ended; nothing was allowed");
        (void)question_close(asking->question);
        free(asking);
        return NULL;
}

static void asking_answer(const Asking *asking, uint32_t id, const char *word) {
        char value[32];

        (void)snprintf(value, sizeof(value), "%u %s", id, word);
        (void)network_command(asking->network, EGRESS_ANSWER, value);
}

/* Ends the first question with an answer. */
static void asking_end(Asking *asking, const char *word) {
        const uint32_t id = asking->asked.items[0].id;

        asking->granting = asking->decided = false;
        asking_answer(asking, id, word);
        (void)net_asked_remove(&asking->asked, id);
        asking_show(asking);
}

static void asking_grant(Asking *asking, bool once) {
        const char *host = asking->asked.items[0].host;
        char value[NET_PEER_TEXT + 16];
        int r;

        (void)snprintf(value, sizeof(value), "%u\n%s", ++asking->once, host);
        r = once ? network_command(asking->network, "grant-once", value)
                 : network_command(asking->network, "grant", host);
        asking->granting = r == 0;
        if (r < 0)
                asking_end(asking, EGRESS_ANSWER_NOBODY);
}

static void asking_take(Asking *asking, QuestionAnswer answer) {
        if (answer == QUESTION_ONCE || answer == QUESTION_ALWAYS)
                asking_grant(asking, answer == QUESTION_ONCE);
        else if (answer == QUESTION_NO || answer == QUESTION_INTERRUPT)
                asking_end(asking, EGRESS_ANSWER_NO);
        else if (answer == QUESTION_NOBODY)
                asking_end(asking, EGRESS_ANSWER_NOBODY);
}

static void asking_show(Asking *asking) {
        if (asking->asked.count > 0 && !asking->granting && !question_shown(asking->question))
                asking_take(asking,
                            question_show(asking->question, asking->asked.items[0].host, "run"));
}

/* --- events --- */

static void asking_on_granted(Asking *asking, const EgressEvent *event) {
        if (!asking->granting)
                return;
        if (event->errnum == 0 && !asking->decided) {
                asking->decided = true;
                network_decide(asking->network, true);
                return;
        }
        if (event->errnum == EADDRINUSE)
                question_say(asking->question,
                             "cannot allow it: a program inside listens on that port itself");
        else if (event->errnum)
                question_say(asking->question, "cannot allow it: the network inside is full");
        asking_end(asking, event->errnum ? EGRESS_ANSWER_NOBODY : EGRESS_ANSWER_YES);
}

/* The question is over without an answer. A grant that is being carried out still ends. */
static void asking_on_end(Asking *asking, uint32_t id) {
        if (asking->granting && asking->asked.items[0].id == id)
                return;
        if (net_asked_remove(&asking->asked, id))
                question_hide(asking->question, "nobody answered in time, or the program gave up; "
                                                "nothing was allowed");
        asking_show(asking);
}

void asking_on_event(void *data, const EgressEvent *event, const NetDenial *first) {
        Asking *asking = data;

        (void)first;
        if (!asking)
                return;
        if (event->type == EGRESS_GRANTED)
                return asking_on_granted(asking, event);
        if (event->type == EGRESS_ASK_ENDS)
                return asking_on_end(asking, event->id);
        if (event->type != EGRESS_ASKS)
                return;
        if (net_asked_add(&asking->asked, event))
                asking_show(asking);
        else
                asking_answer(asking, event->id, EGRESS_ANSWER_NOBODY);
}

/* --- polling --- */

bool asking_shown(const Asking *asking) {
        return asking && question_shown(asking->question);
}

int asking_fd(const Asking *asking) {
        return asking ? question_fd(asking->question) : FD_NONE;
}

void asking_pump(Asking *asking, void (*interrupt)(void *data), void *data) {
        QuestionAnswer answer;

        if (!asking_shown(asking))
                return;
        answer = question_read(asking->question);
        if (answer == QUESTION_INTERRUPT)
                interrupt(data);
        asking_take(asking, answer);
}
