/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that the server sends, and their replies. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "rpc/connection.h"
#include "rpc/peek.h"

struct RpcRequest {
        RpcConnection *connection;
        RpcRequest *previous, *next;
        uint64_t number; /* the id is "t" and this number */
        RpcAnswerFn fn;
        void *data;
};

/* --- sending --- */

static int send_request(RpcConnection *c, uint64_t number, const char *method,
                        const JsonWriter *params) {
        char id[24];

        (void)snprintf(id, sizeof(id), "t%" PRIu64, number);
        return rpc_connection_write(c, id, method, params);
}

int rpc_request(RpcConnection *c, const char *method, const JsonWriter *params, RpcAnswerFn fn,
                void *data, RpcRequest **ret) {
        RpcRequest *request;
        int r;

        if (c->broken || c->eof)
                return -EPIPE;
        if (c->requests_count >= RPC_CALLS_MAX)
                return -EBUSY;
        if (c->queue.bytes >= RPC_QUEUE_SOFT / 2) {
                c->room_wanted = true;
                return -EAGAIN;
        }
        request = malloc(sizeof(*request));
        if (!request)
                return -ENOMEM;
        *request = (RpcRequest){ .connection = c,
                                 .next = c->requests,
                                 .number = ++c->last_request,
                                 .fn = fn,
                                 .data = data };
        r = send_request(c, request->number, method, params);
        if (r < 0) {
                free(request);
                return r;
        }
        if (request->next)
                request->next->previous = request;
        c->requests = request;
        c->requests_count++;
        *ret = request;
        rpc_connection_settle(c);
        return 0;
}

RpcRequest *rpc_request_cancel(RpcRequest *request) {
        RpcConnection *c;

        if (!request)
                return NULL;
        c = request->connection;
        if (request->previous)
                request->previous->next = request->next;
        else
                c->requests = request->next;
        if (request->next)
                request->next->previous = request->previous;
        c->requests_count--;
        free(request);
        return NULL;
}

/* --- replies --- */

/* The request is gone by the time that its owner is told. */
static void request_tell(RpcRequest *request, const RpcAnswer *answer) {
        const RpcAnswerFn fn = request->fn;
        void *data = request->data;

        (void)rpc_request_cancel(request);
        fn(data, answer);
}

void rpc_requests_end(RpcConnection *c) {
        static const RpcAnswer gone = { .why = "the client has disconnected" };

        while (c->requests)
                request_tell(c->requests, &gone);
}

/* Returns the number in "t12", or 0 for any other id. */
static uint64_t read_id(const char *text) {
        uint64_t number = 0;

        if (text[0] != 't' || str_to_uint(text + 1, UINT64_MAX, &number) < 0)
                return 0;
        return number;
}

static RpcRequest *request_find(const RpcConnection *c, uint64_t number) {
        for (RpcRequest *request = c->requests; request; request = request->next)
                if (request->number == number)
                        return request;
        return NULL;
}

bool rpc_take_answer(RpcConnection *c, const JsonValue *root) {
        RpcAnswer answer = { .result = json_member(root, "result"),
                             .error = json_member(root, "error") };
        const char *id = json_member_string(root, "id");
        RpcRequest *request;

        if (json_member(root, "method") || (!answer.result && !answer.error))
                return false;
        request = id ? request_find(c, read_id(id)) : NULL;
        if (!request)
                return true;
        if (answer.result)
                answer.error = NULL;
        else
                answer.why = json_member_string(answer.error, "message");
        if (!answer.result && !answer.why)
                answer.why = "an error without a message";
        request_tell(request, &answer);
        return true;
}

/* This relies on replies that have their id before the result, as programs usually write them. */
bool rpc_take_bad_answer(RpcConnection *c, const char *head, const char *why) {
        _cleanup_(json_freep) JsonDocument *document = rpc_peek(head);
        const JsonValue *root = document ? json_root(document) : NULL;
        const char *id = json_member_string(root, "id");
        const RpcAnswer bad = { .why = why };
        const uint64_t number = id && !json_member(root, "method") ? read_id(id) : 0;
        RpcRequest *request;

        if (number == 0 || number > c->last_request) /* clients may use such ids themselves */
                return false;
        request = request_find(c, number);
        if (request)
                request_tell(request, &bad);
        return true;
}
