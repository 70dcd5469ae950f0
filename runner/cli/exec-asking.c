/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exec-asking.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/list.h"
#include "base/strings.h"
#include "base/time.h"
#include "network/asked.h"
#include "streams/question.h"

typedef struct AskedHost {
        struct AskedHost *next;
        char *request; /* The id of the request. */
        char host[NET_PEER_TEXT];
        uint64_t until; /* usec of time_now_usec(): the keeper takes no answer later. */
} AskedHost;

typedef struct ExecAsking {
        RpcClient *client;
        Question *question;
        AskedHost *hosts; /* The first one is shown. */
} ExecAsking;

int exec_asking_new(RpcClient *client, ExecAsking **ret, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        Question *question = question_open();
        int r;

        *ret = NULL;
        if (!question)
                return 0;
        *ret = calloc(1, sizeof(**ret));
        if (!*ret) {
                (void)question_close(question);
                return error_oom(reterr);
        }
        **ret = (ExecAsking){ .client = client, .question = question };
        r = rpc_client_call(client, "network.attend", NULL, NULL, 0, &message, reterr);
        if (r < 0)
                *ret = exec_asking_free(*ret);
        return r;
}

static void asked_host_end(ExecAsking *asking) {
        AskedHost *host = asking->hosts;

        (void)list_remove(&asking->hosts, host);
        free(host->request);
        free(host);
}

ExecAsking *exec_asking_free(ExecAsking *asking) {
        if (!asking)
                return NULL;
        question_hide(asking->question, "the command has ended; nothing was allowed");
        (void)question_close(asking->question);
        while (asking->hosts)
                asked_host_end(asking);
        free(asking);
        return NULL;
}

/* Replies to the first question. If allow is NULL, the reply is an error: nobody could be asked. */
static void exec_asking_reply(ExecAsking *asking, const char *allow) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        Error ignored;

        json_write_object(&w, NULL);
        if (!allow)
                json_write_int(&w, "code", -32000);
        json_write_string(&w, allow ? "allow" : "message", allow ? allow : "nobody can be asked");
        json_write_end(&w);
        if (json_write_finish(&w) == 0)
                (void)rpc_client_answer(asking->client, asking->hosts->request, allow ? &w : NULL,
                                        allow ? NULL : &w, &ignored);
        asked_host_end(asking);
}

static void exec_asking_show(ExecAsking *asking) {
        while (asking->hosts && !question_shown(asking->question) &&
               question_show(asking->question, asking->hosts->host, "session") != QUESTION_WAITS)
                exec_asking_reply(asking, NULL);
}

void exec_asking_take(ExecAsking *asking, const RpcMessage *message) {
        EgressEvent event = { .type = EGRESS_ASKS };
        NetAskedList list = { .count = 0 };
        AskedHost *host;

        if (!asking || !message->request || !message->method ||
            !streq(message->method, "network.ask"))
                return;
        event.port = (uint16_t)json_member_uint(message->params, "port");
        (void)snprintf(event.name, sizeof(event.name), "%s",
                       json_member_text(message->params, "name"));
        host = net_asked_add(&list, &event) ? calloc(1, sizeof(*host)) : NULL;
        if (!host)
                return;
        memcpy(host->host, list.items[0].host, sizeof(host->host));
        host->request = strdup(message->request);
        host->until = time_now_usec() + json_member_uint(message->params, "timeout_ms") * 1000;
        if (!host->request) {
                free(host);
                return;
        }
        list_append(&asking->hosts, host);
        exec_asking_show(asking);
}

bool exec_asking_shown(const ExecAsking *asking) {
        return asking && question_shown(asking->question);
}

int exec_asking_fd(const ExecAsking *asking) {
        return asking ? question_fd(asking->question) : FD_NONE;
}

int exec_asking_wait(const ExecAsking *asking) {
        const uint64_t now = time_now_usec();

        if (!exec_asking_shown(asking))
                return -1;
        return asking->hosts->until > now ? (int)((asking->hosts->until - now) / 1000 + 1) : 0;
}

void exec_asking_pump(ExecAsking *asking, bool input, void (*interrupt)(void *data), void *data) {
        static const char *const words[] = { [QUESTION_ONCE] = "once",
                                             [QUESTION_ALWAYS] = "session",
                                             [QUESTION_NO] = "no",
                                             [QUESTION_INTERRUPT] = "no",
                                             [QUESTION_NOBODY] = NULL };
        QuestionAnswer answer;

        if (!exec_asking_shown(asking))
                return;
        answer = input ? question_read(asking->question) : QUESTION_WAITS;
        if (answer == QUESTION_INTERRUPT)
                interrupt(data);
        if (answer != QUESTION_WAITS) {
                exec_asking_reply(asking, words[answer]);
        } else if (time_now_usec() >= asking->hosts->until) {
                question_hide(asking->question, "nobody answered in time; nothing was allowed");
                asked_host_end(asking);
        }
        exec_asking_show(asking);
}
