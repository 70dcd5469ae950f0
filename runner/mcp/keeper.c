/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/list.h"
#include "mcp/mcp-internal.h"

static int mcp_keeper_open(Mcp *mcp, Error *reterr) {
        uint64_t ignored;
        int r;

        if (mcp->loop.keeper)
                return 0;
        r = client_loop_connect(&mcp->loop, mcp->settings.session, reterr);
        if (r < 0)
                return r;
        /* Without a network, nobody asks. */
        return mcp->settings.ask && mcp->elicits
                       ? rpc_client_send(mcp->loop.keeper, "network.attend", NULL, NULL, 0,
                                         &ignored, reterr)
                       : 0;
}

/* The keeper may have ended since the last request, for example after the session's idle time. */
static int mcp_keeper_send(Mcp *mcp, const char *method, const JsonWriter *params, uint64_t *ret,
                           Error *reterr) {
        int r;

        client_loop_read_keeper(&mcp->loop);
        r = mcp_keeper_open(mcp, reterr);
        return r < 0 ? r : rpc_client_send(mcp->loop.keeper, method, params, NULL, 0, ret, reterr);
}

void mcp_ask(Mcp *mcp, McpCall *call, const char *method, JsonWriter *params, McpAnswerFn answer) {
        Error error;
        int r;

        json_write_end(params);
        call->answer = answer;
        if (mcp->calls_count >= MCP_ASKED_MAX)
                r = error_set(&error, ERROR_LIMIT, 0, "too many requests are waiting");
        else if (json_write_finish(params) < 0)
                r = error_oom(&error);
        else
                r = mcp_keeper_send(mcp, method, params, &call->number, &error);
        if (r < 0)
                return answer(mcp, call, NULL, &error);
        list_append(&mcp->calls, call);
        mcp->calls_count++;
}

void mcp_ask_only(Mcp *mcp, const char *method, const JsonWriter *params) {
        uint64_t ignored;
        Error error;

        (void)mcp_keeper_send(mcp, method, params, &ignored, &error);
}

static void mcp_keeper_answer(Mcp *mcp, McpCall *call, const JsonValue *result,
                              const Error *error) {
        (void)list_remove(&mcp->calls, call);
        mcp->calls_count--;
        call->answer(mcp, call, result, error);
}

void mcp_keeper_take(void *data, const RpcMessage *message, const Error *error) {
        Mcp *mcp = data;

        if (message->method) {
                if (streq(message->method, "process.output"))
                        mcp_call_output(mcp, message->params);
                else if (streq(message->method, "network.ask"))
                        mcp_ask_host(mcp, message);
                return;
        }
        list_each_safe(call, mcp->calls)
                if (call->number == message->id)
                        return mcp_keeper_answer(mcp, call, message->result, error);
}

void mcp_keeper_lost(void *data, const Error *error) {
        Mcp *mcp = data;

        while (mcp->calls)
                mcp_keeper_answer(mcp, mcp->calls, NULL, error);
}
