/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of holt-egress (egress/questions.h) in a session.
 *
 * Theory of operation. A client offers to answer questions (network.attend). While such a client is
 * connected, holt-egress lets connections wait for an answer. The client that has offered last gets
 * each question as a request. If it says yes, the keeper first makes a grant, as for session.allow,
 * and then tells holt-egress. holt-egress ends a question at its deadline, and a later reply of the
 * client is dropped. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/list.h"
#include "keeper/keeper.h"
#include "network/asked.h"

typedef struct Attendant {
        struct Attendant *next;
        RpcConnection *connection;
} Attendant;

typedef struct AskedClient {
        struct AskedClient *next;
        Keeper *keeper;
        uint32_t id;
        char host[NET_PEER_TEXT];
        RpcRequest *request;
} AskedClient;

struct Questions {
        Attendant *attendants; /* The last one first. */
        AskedClient *asked;
};

/* --- answers --- */

void keeper_answer_question(Keeper *keeper, uint32_t id, const char *word) {
        char value[32];

        (void)snprintf(value, sizeof(value), "%" PRIu32 " %s", id, word);
        (void)network_command(&keeper->sandbox.network, EGRESS_ANSWER, value);
}

static void asked_free(AskedClient *asked) {
        (void)list_remove(&asked->keeper->questions->asked, asked);
        (void)rpc_request_cancel(asked->request);
        free(asked);
}

static void asked_grant(const AskedClient *asked, bool once) {
        _cleanup_(strlist_clear) StrList rules = { 0 };
        Error ignored;
        int r = strlist_add(&rules, asked->host);

        if (r == 0)
                r = keeper_grant_asked(asked->keeper, &rules, once, asked->id, &ignored);
        if (r < 0)
                keeper_answer_question(asked->keeper, asked->id, EGRESS_ANSWER_NOBODY);
}

static void asked_on_answer(void *data, const RpcAnswer *answer) {
        AskedClient *asked = data;
        const char *allow = answer->result ? json_member_string(answer->result, "allow") : NULL;

        asked->request = NULL;
        if (allow && streq(allow, "once"))
                asked_grant(asked, true);
        else if (allow && streq(allow, "session"))
                asked_grant(asked, false);
        else
                keeper_answer_question(asked->keeper, asked->id,
                                       allow && streq(allow, "no") ? EGRESS_ANSWER_NO
                                                                   : EGRESS_ANSWER_NOBODY);
        asked_free(asked);
}

/* --- questions --- */

static int asked_send(AskedClient *asked, const EgressEvent *event, const Attendant *attendant) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_string(&w, "name", event->name);
        json_write_uint(&w, "port", event->port);
        json_write_uint(&w, "timeout_ms", asked->keeper->plan.net_ask_timeout / 1000);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return -ENOMEM;
        return rpc_request(attendant->connection, "network.ask", &w, asked_on_answer, asked,
                           &asked->request);
}

void keeper_on_question(Keeper *keeper, const EgressEvent *event) {
        const struct Questions *questions = keeper->questions;
        AskedClient *asked = questions && questions->attendants ? calloc(1, sizeof(*asked)) : NULL;
        NetAskedList list = { .count = 0 };
        int r = asked && net_asked_add(&list, event) ? 0 : -EINVAL;

        if (r == 0) {
                *asked = (AskedClient){ .keeper = keeper, .id = event->id };
                memcpy(asked->host, list.items[0].host, sizeof(asked->host));
                r = asked_send(asked, event, questions->attendants);
        }
        if (r < 0) {
                free(asked);
                return keeper_answer_question(keeper, event->id, EGRESS_ANSWER_NOBODY);
        }
        list_push(&keeper->questions->asked, asked);
}

void keeper_on_question_end(Keeper *keeper, const EgressEvent *event) {
        if (keeper->questions)
                list_each_safe(asked, keeper->questions->asked)
                        if (asked->id == event->id)
                                asked_free(asked);
}

/* --- clients --- */

static void questions_tell(Keeper *keeper) {
        const bool asks = keeper->questions->attendants != NULL;

        (void)network_command(&keeper->sandbox.network, EGRESS_ASK,
                              asks                   ? EGRESS_ASK_YES
                              : keeper->plan.net_ask ? EGRESS_ASK_NOBODY
                                                     : EGRESS_ASK_NO);
}

int keeper_attend(Keeper *keeper, RpcConnection *connection, Error *reterr) {
        Attendant *attendant;
        int r;

        if (keeper->plan.network != NETWORK_ALLOW) {
                r = error_set(reterr, ERROR_USAGE, 0, "the session has no network with rules");
                return error_cure(reterr, r, "Create one with holt create --ask, or with --net.");
        }
        if (!keeper->questions)
                keeper->questions = calloc(1, sizeof(*keeper->questions));
        if (!keeper->questions)
                return error_oom(reterr);
        keeper_leave_questions(keeper, connection);
        attendant = calloc(1, sizeof(*attendant));
        if (!attendant)
                return error_oom(reterr);
        attendant->connection = connection;
        list_push(&keeper->questions->attendants, attendant);
        questions_tell(keeper);
        return 0;
}

/* The open questions of this connection end by asked_on_answer(). */
void keeper_leave_questions(Keeper *keeper, const RpcConnection *connection) {
        bool left = false;

        if (!keeper->questions)
                return;
        list_each_safe(attendant, keeper->questions->attendants) {
                if (attendant->connection != connection)
                        continue;
                (void)list_remove(&keeper->questions->attendants, attendant);
                free(attendant);
                left = true;
        }
        if (left && !keeper->questions->attendants)
                questions_tell(keeper);
}

void keeper_questions_free(Keeper *keeper) {
        if (!keeper->questions)
                return;
        list_each_safe(attendant, keeper->questions->attendants)
                free(attendant);
        while (keeper->questions->asked)
                asked_free(keeper->questions->asked);
        free(keeper->questions);
        keeper->questions = NULL;
}
