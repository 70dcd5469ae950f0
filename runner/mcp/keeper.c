/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/list.h"
#include "keeper/connect.h"
#include "mcp/mcp-internal.h"

static int mcp_keeper_open(Mcp *mcp, Error *reterr) {
        uint64_t ignored;
        int fd, r;

        if (mcp->keeper)
                return 0;
        r = keeper_connect(mcp->settings.session, &fd, reterr);
        if (r < 0)
                return r;
        r = rpc_client_new(fd, &mcp->keeper, reterr);
        if (r < 0) {
                fd_close(fd);
                return r;
        }
        rpc_client_queue(mcp->keeper);
        /* Without a network, nobody asks. */
        return mcp->settings.ask && mcp->elicits ? rpc_client_send(mcp->keeper, "network.attend",
                                                                   NULL, NULL, 0, &ignored, reterr)
                                                 : 0;
}

/* The keeper may have ended since the last request, for example after the session's idle time. */
static int mcp_keeper_send(Mcp *mcp, const char *method, const JsonWriter *params, uint64_t *ret,
                           Error *reterr) {
        int r;

        mcp_keeper_read(mcp);
        r = mcp_keeper_open(mcp, reterr);
        return r < 0 ? r : rpc_client_send(mcp->keeper, method, params, NULL, 0, ret, reterr);
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

void mcp_tell(Mcp *mcp, const char *method, const JsonWriter *params) {
        uint64_t ignored;
        Error error;

        (void)mcp_keeper_send(mcp, method, params, &ignored, &error);
}

int mcp_keeper_fd(const Mcp *mcp) {
        return mcp->keeper ? rpc_client_fd(mcp->keeper) : FD_NONE;
}

static void mcp_keeper_answer(Mcp *mcp, McpCall *call, const JsonValue *result,
                              const Error *error) {
        (void)list_remove(&mcp->calls, call);
        mcp->calls_count--;
        call->answer(mcp, call, result, error);
}

static void mcp_keeper_take(Mcp *mcp, const RpcMessage *message, const Error *error) {
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

void mcp_keeper_close(Mcp *mcp, const Error *error) {
        mcp->keeper = rpc_client_free(mcp->keeper);
        while (mcp->calls)
                mcp_keeper_answer(mcp, mcp->calls, NULL, error);
}

void mcp_keeper_read(Mcp *mcp) {
        while (mcp->keeper) {
                RpcMessage message = RPC_MESSAGE_NONE;
                Error error = { 0 };
                int r = rpc_client_next(mcp->keeper, false, &message, &error);

                if (r == -EAGAIN)
                        return;
                if (r < 0)
                        mcp_keeper_close(mcp, &error);
                else
                        mcp_keeper_take(mcp, &message, &error);
                rpc_message_clear(&message);
        }
}
