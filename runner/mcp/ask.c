/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the user (elicitation), about hosts that no rule allows. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "mcp/mcp-internal.h"
#include "policy/net/rules.h"

static void mcp_question_free(McpQuestion *question) {
        if (question->call)
                mcp_call_free(question->call);
        free(question->request);
        free(question->rule);
        free(question);
}

void mcp_questions_free(Mcp *mcp) {
        list_each_safe(question, mcp->questions)
                mcp_question_free(question);
        mcp->questions = NULL;
}

/* The only field is an enum, so that an empty form allows nothing. */
static void mcp_question_send(Mcp *mcp, const McpQuestion *question, const char *text) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        static const char *const answers[] = { "once", "session", "no" };

        json_write_object(&w, NULL);
        json_write_string(&w, "jsonrpc", "2.0");
        json_write_uint(&w, "id", question->id);
        json_write_string(&w, "method", "elicitation/create");
        json_write_object(&w, "params");
        json_write_string(&w, "message", text);
        json_write_object(&w, "requestedSchema");
        json_write_string(&w, "type", "object");
        json_write_object(&w, "properties");
        json_write_object(&w, "allow");
        json_write_string(&w, "type", "string");
        json_write_string(
                &w, "description",
                "once: one connection; session: as long as the session exists; no: refuse");
        json_write_array(&w, "enum");
        for (size_t i = 0; i < ELEMENTSOF(answers); i++)
                json_write_string(&w, NULL, answers[i]);
        json_write_end(&w);
        json_write_end(&w);
        json_write_end(&w);
        json_write_array(&w, "required");
        json_write_string(&w, NULL, "allow");
        json_write_end(&w);
        json_write_end(&w);
        json_write_end(&w);
        json_write_end(&w);
        mcp_send(mcp, &w);
}

/* Takes over call and request, also if it returns NULL. */
static McpQuestion *mcp_question_new(Mcp *mcp, McpCall *call, const char *request,
                                     const char *rule) {
        McpQuestion *question = mcp->questions_count < MCP_QUESTIONS_MAX
                                        ? calloc(1, sizeof(*question))
                                        : NULL;

        if (!question)
                return NULL;
        question->id = ++mcp->asked;
        question->call = call;
        question->request = request ? strdup(request) : NULL;
        question->rule = str_format("net:%s", rule);
        if (!question->rule || (request && !question->request)) {
                question->call = NULL;
                mcp_question_free(question);
                return NULL;
        }
        list_append(&mcp->questions, question);
        mcp->questions_count++;
        return question;
}

/* --- request_grant --- */

void mcp_grant_start(Mcp *mcp, McpCall *call) {
        const char *given = json_member_text(call->given, "rule");
        /* Refusals name "net:HOST", as holt allow takes it. */
        const char *rule = given + (str_starts(given, "net:") ? strlen("net:") : 0);
        const char *reason = json_member_text(call->given, "reason");
        const char *wrong = NULL;
        char shown[512], why[512];
        _cleanup_free_ char *text = NULL, *command = NULL;
        McpQuestion *question;

        (void)str_visible(rule, shown, sizeof(shown));
        (void)str_quote(reason, why, sizeof(why));
        /* The rule is part of a command and of a question, where other words could mislead. */
        if (net_rule_check(rule, &wrong) < 0) {
                text = str_format("holt: rule \"%s\" %s", shown, wrong);
                return mcp_call_fail(mcp, call, text ? text : "holt: out of memory");
        }
        if (!mcp->settings.ask || !mcp->elicits) {
                command = str_format("holt: %s. The user can run: holt allow %s 'net:%s'",
                                     mcp->settings.ask ? "this client cannot ask the user"
                                                       : "holt mcp runs without --ask",
                                     mcp->settings.session, shown);
                return mcp_call_fail(mcp, call, command ? command : "holt: out of memory");
        }
        text = str_format("The sandbox %s asks to reach %s. The agent's reason: \"%s\". Allow it?",
                          mcp->settings.session, shown, why);
        question = text ? mcp_question_new(mcp, call, NULL, rule) : NULL;
        if (!question)
                return mcp_call_fail(mcp, call, "holt: too many questions are waiting");
        mcp_question_send(mcp, question, text);
}

static void mcp_grant_done(Mcp *mcp, McpCall *call, const JsonValue *result, const Error *error) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        if (!result) {
                _cleanup_free_ char *text = mcp_error_text(error);

                return mcp_call_fail(mcp, call, text ? text : "holt: out of memory");
        }
        mcp_reply_begin(&call->id, &w);
        json_write_array(&w, "content");
        mcp_write_text("holt: the user has allowed it", &w);
        json_write_end(&w);
        mcp_reply_end(mcp, &w);
        mcp_call_free(call);
}

static void mcp_grant_answer(Mcp *mcp, McpQuestion *question, const char *allow) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        McpCall *call = question->call;

        question->call = NULL;
        if (streq(allow, "no"))
                return mcp_call_fail(mcp, call, "holt: the user has refused it. Do not ask again.");
        json_write_object(&w, NULL);
        json_write_array(&w, "grants");
        json_write_string(&w, NULL, question->rule);
        json_write_end(&w);
        if (streq(allow, "once"))
                json_write_bool(&w, "once", true);
        mcp_ask(mcp, call, "session.allow", &w, mcp_grant_done);
}

void mcp_question_cancel(Mcp *mcp, const char *id) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        list_each_safe(question, mcp->questions) {
                if (!question->call || !question->call->id.data ||
                    !streq(question->call->id.data, id))
                        continue;
                json_write_object(&w, NULL);
                json_write_string(&w, "jsonrpc", "2.0");
                json_write_string(&w, "method", "notifications/cancelled");
                json_write_object(&w, "params");
                json_write_uint(&w, "requestId", question->id);
                json_write_end(&w);
                json_write_end(&w);
                (void)list_remove(&mcp->questions, question);
                mcp->questions_count--;
                mcp_question_free(question);
                return mcp_send(mcp, &w);
        }
}

/* --- network.ask --- */

static void mcp_host_answer(Mcp *mcp, const char *request, const char *allow) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        Error ignored;

        json_write_object(&w, NULL);
        json_write_string(&w, "allow", allow);
        json_write_end(&w);
        if (json_write_finish(&w) == 0 && mcp->loop.keeper)
                (void)rpc_client_answer(mcp->loop.keeper, request, &w, NULL, &ignored);
}

void mcp_ask_host(Mcp *mcp, const RpcMessage *message) {
        char name[300];
        _cleanup_free_ char *rule = NULL, *text = NULL;
        McpQuestion *question;

        (void)str_visible(json_member_text(message->params, "name"), name, sizeof(name));
        rule = str_format("%s:%" PRIu64, name, json_member_uint(message->params, "port"));
        text = str_format("A program in the sandbox %s connects to %s. Allow it?",
                          mcp->settings.session, rule ? rule : name);
        question = rule && text && message->request
                           ? mcp_question_new(mcp, NULL, message->request, rule)
                           : NULL;
        if (question)
                mcp_question_send(mcp, question, text);
        else if (message->request)
                mcp_host_answer(mcp, message->request, "no");
}

/* --- answers --- */

/* Returns "once", "session" or "no". Only an explicit answer allows anything. */
static const char *mcp_answer_word(const JsonValue *root) {
        const JsonValue *result = json_member(root, "result");
        const char *allow = json_member_text(json_member(result, "content"), "allow");

        if (!streq(json_member_text(result, "action"), "accept"))
                return "no";
        return streq(allow, "once") ? "once" : streq(allow, "session") ? "session" : "no";
}

void mcp_take_answer(Mcp *mcp, uint64_t id, const JsonValue *root) {
        list_each_safe(question, mcp->questions) {
                if (question->id != id)
                        continue;
                (void)list_remove(&mcp->questions, question);
                mcp->questions_count--;
                if (question->request)
                        mcp_host_answer(mcp, question->request, mcp_answer_word(root));
                else
                        mcp_grant_answer(mcp, question, mcp_answer_word(root));
                return mcp_question_free(question);
        }
}
