/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/questions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/credit.h"
#include "base/list.h"
#include "base/strings.h"
#include "base/time.h"
#include "egress/connection-internal.h"
#include "network/asked.h"

typedef enum AskMode {
        ASK_NO,
        ASK_NOBODY,
        ASK_YES,
} AskMode;

typedef struct Question {
        struct Question *next;
        Egress *egress;
        uint32_t id;
        unsigned number; /* The name's number. */
        uint16_t port;
        LoopTimer *timer;
} Question;

typedef struct Refused {
        unsigned number;
        uint16_t port;
} Refused;

typedef struct Questions {
        AskMode mode;
        Question *open;
        size_t open_count;
        uint32_t last_id;
        Credit credit;
        Refused refused[QUESTIONS_REFUSED_MAX];
        size_t refused_count; /* All that were ever remembered; the oldest are overwritten. */
} Questions;

/* --- the end of a question --- */

static void question_free(Question *question) {
        Questions *questions = question->egress->questions;

        if (list_remove(&questions->open, question))
                questions->open_count--;
        question->timer = loop_timer_free(question->timer);
        free(question);
}

static Connection *question_waiting(const Question *question) {
        Connection *c = question->egress->connections;

        while (c && c->question != question)
                c = c->next;
        return c;
}

/* Judges the waiting connections again, or refuses them for the reason. Either may end other
 * connections, too. */
static void question_release(Question *question, bool judge, EgressReason reason) {
        Connection *c;

        while ((c = question_waiting(question))) {
                c->question = NULL;
                c->answered = true;
                c->state = CONNECTION_RESOLVES;
                if (judge)
                        connection_judge(c);
                else
                        connection_refuse(c, reason, NULL);
        }
        question_free(question);
}

static void question_tell(const Question *question, EgressEventType type) {
        EgressEvent event = { .type = type, .id = question->id, .port = question->port };

        (void)snprintf(event.name, sizeof(event.name), "%s",
                       names_text(question->egress->names, question->number));
        egress_send(question->egress, &event);
}

static void question_on_time(void *data) {
        Question *question = data;

        question_tell(question, EGRESS_ASK_ENDS);
        question_release(question, false, EGRESS_NO_ANSWER);
}

void question_leave(Connection *c) {
        Question *question = TAKE_PTR(c->question);

        if (!question)
                return;
        for (const Connection *other = c->egress->connections; other; other = other->next)
                if (other->question == question)
                        return;
        question_tell(question, EGRESS_ASK_ENDS);
        question_free(question);
}

/* --- asking --- */

static bool question_is_refused(const Questions *questions, unsigned number, uint16_t port) {
        for (size_t i = 0; i < questions->refused_count && i < QUESTIONS_REFUSED_MAX; i++)
                if (questions->refused[i].number == number && questions->refused[i].port == port)
                        return true;
        return false;
}

static bool questions_pay(Questions *questions) {
        return questions->open_count < QUESTIONS_OPEN_MAX &&
               credit_take(&questions->credit, QUESTIONS_BURST, QUESTIONS_USEC, time_now_usec());
}

static Question *question_find(const Questions *questions, unsigned number, uint16_t port) {
        Question *question = questions->open;

        while (question && (question->number != number || question->port != port))
                question = question->next;
        return question;
}

static Question *question_new(Connection *c) {
        Questions *questions = c->egress->questions;
        Question *question = questions_pay(questions) ? calloc(1, sizeof(*question)) : NULL;

        if (!question)
                return NULL;
        *question = (Question){ .egress = c->egress,
                                .id = ++questions->last_id,
                                .number = (unsigned)c->number,
                                .port = c->port };
        if (loop_timer_new(c->egress->loop, question_on_time, question, &question->timer, NULL) <
            0) {
                free(question);
                return NULL;
        }
        loop_timer_set(question->timer, time_now_usec() + c->egress->ask_time);
        list_append(&questions->open, question);
        questions->open_count++;
        question_tell(question, EGRESS_ASKS);
        return question;
}

/* A sandbox whose connections are audited belongs to a session, and any other to `holt run`. */
static EgressReason questions_nobody(const Egress *egress) {
        return egress->audits ? EGRESS_NO_CLIENT : EGRESS_NO_TERMINAL;
}

bool questions_take_name(const Egress *egress, const char *name, EgressReason *ret) {
        const Questions *questions = egress->questions;
        char rule[NET_NAME_MAX + 8];

        if (!questions || questions->mode == ASK_NO)
                return false;
        if (questions->mode == ASK_NOBODY) {
                *ret = questions_nobody(egress);
                return false;
        }
        (void)snprintf(rule, sizeof(rule), "%s:1", name);
        return net_asked_is_name(rule);
}

bool questions_ask(Connection *c, EgressReason *ret) {
        const Questions *questions = c->egress->questions;
        const unsigned number = (unsigned)c->number;

        if (!questions || c->number < 0 || c->answered)
                return false;
        if (questions->mode != ASK_YES) {
                *ret = questions->mode == ASK_NO ? EGRESS_NOBODY : questions_nobody(c->egress);
                return false;
        }
        if (question_is_refused(questions, number, c->port)) {
                *ret = EGRESS_ANSWERED_NO;
                return false;
        }
        c->question = question_find(questions, number, c->port);
        if (!c->question)
                c->question = question_new(c);
        *ret = EGRESS_QUESTIONS;
        if (c->question)
                c->state = CONNECTION_ASKS;
        return c->question != NULL;
}

/* --- for holt --- */

int questions_set(Egress *egress, const char *value) {
        static const char *const words[] = { [ASK_NO] = EGRESS_ASK_NO,
                                             [ASK_NOBODY] = EGRESS_ASK_NOBODY,
                                             [ASK_YES] = EGRESS_ASK_YES };
        Questions *questions = egress->questions;
        AskMode mode = ASK_NO;

        if (!questions)
                questions = egress->questions = calloc(1, sizeof(*questions));
        if (!questions)
                return -ENOMEM;
        while (mode <= ASK_YES && !streq(words[mode], value))
                mode++;
        if (mode > ASK_YES)
                return -EINVAL;
        questions->mode = mode;
        while (mode != ASK_YES && questions->open)
                question_release(questions->open, false, EGRESS_NOBODY);
        return 0;
}

void questions_answer(Egress *egress, const char *value) {
        Questions *questions = egress->questions;
        char *word;
        const uint32_t id = (uint32_t)strtoul(value, &word, 10);
        Question *question = questions ? questions->open : NULL;

        while (question && question->id != id)
                question = question->next;
        if (!question || *word != ' ')
                return;
        if (streq(word + 1, EGRESS_ANSWER_YES))
                return question_release(question, true, 0);
        if (streq(word + 1, EGRESS_ANSWER_NOBODY))
                return question_release(question, false, EGRESS_NOBODY);
        questions->refused[questions->refused_count++ % QUESTIONS_REFUSED_MAX] = (Refused){
                question->number, question->port
        };
        question_release(question, false, EGRESS_ANSWERED_NO);
}
