/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "mcp/mcp-internal.h"
#include "mcp/peek.h"

/* Versions of the protocol that the server speaks, the newest first. */
static const char *const versions[] = { "2025-06-18", "2025-03-26", "2024-11-05" };

/* --- messages to the client --- */

void mcp_send(Mcp *mcp, JsonWriter *w) {
        client_loop_send(&mcp->loop, w);
}

void mcp_reply_begin(const JsonWriter *id, JsonWriter *w) {
        json_write_object(w, NULL);
        json_write_string(w, "jsonrpc", "2.0");
        json_write_value(w, "id", id);
        json_write_object(w, "result");
}

void mcp_reply_end(Mcp *mcp, JsonWriter *w) {
        json_write_end(w);
        json_write_end(w);
        mcp_send(mcp, w);
}

void mcp_write_error(const JsonWriter *id, int code, const char *message, JsonWriter *w) {
        json_write_object(w, NULL);
        json_write_string(w, "jsonrpc", "2.0");
        if (id)
                json_write_value(w, "id", id);
        else
                json_write_null(w, "id");
        json_write_object(w, "error");
        json_write_int(w, "code", code);
        json_write_string(w, "message", message);
        json_write_end(w);
        json_write_end(w);
}

void mcp_fail(Mcp *mcp, const JsonWriter *id, int code, const char *message) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        mcp_write_error(id, code, message, &w);
        mcp_send(mcp, &w);
}

/* --- requests --- */

static void server_write_capabilities(JsonWriter *w) {
        json_write_object(w, "capabilities");
        json_write_object(w, "tools");
        json_write_end(w);
        json_write_object(w, "resources");
        json_write_bool(w, "subscribe", true);
        json_write_end(w);
        json_write_end(w);
}

static void server_initialize(Mcp *mcp, const JsonWriter *id, const JsonValue *params) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        const char *asked = json_member_text(params, "protocolVersion"), *version = versions[0];

        for (size_t i = 0; i < ELEMENTSOF(versions); i++)
                if (streq(asked, versions[i]))
                        version = versions[i];
        mcp->initialized = true;
        mcp->elicits = json_member(json_member(params, "capabilities"), "elicitation") != NULL;
        mcp->lists_roots = json_member(json_member(params, "capabilities"), "roots") != NULL;
        mcp_reply_begin(id, &w);
        json_write_string(&w, "protocolVersion", version);
        server_write_capabilities(&w);
        json_write_object(&w, "serverInfo");
        json_write_string(&w, "name", "holt");
        json_write_string(&w, "title", "holt sandbox");
        json_write_string(&w, "version", "0.1.0");
        json_write_end(&w);
        json_write_string(
                &w, "instructions",
                "The tools act in a sandbox, whose workspace is /workspace. The last line "
                "of a result says what the sandbox refused, and what would allow it. Do "
                "not repeat a refused command: ask the user.");
        mcp_reply_end(mcp, &w);
}

static void server_ping(Mcp *mcp, const JsonWriter *id, const JsonValue *params) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        (void)params;
        mcp_reply_begin(id, &w);
        mcp_reply_end(mcp, &w);
}

static void server_list_tools(Mcp *mcp, const JsonWriter *id, const JsonValue *params) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        (void)params;
        mcp_reply_begin(id, &w);
        json_write_array(&w, "tools");
        mcp_tools_write(mcp, &w);
        json_write_end(&w);
        mcp_reply_end(mcp, &w);
}

static void server_list_templates(Mcp *mcp, const JsonWriter *id, const JsonValue *params) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        (void)params;
        mcp_reply_begin(id, &w);
        json_write_array(&w, "resourceTemplates");
        json_write_end(&w);
        mcp_reply_end(mcp, &w);
}

static const struct {
        const char *method;
        void (*reply)(Mcp *mcp, const JsonWriter *id, const JsonValue *params);
        void (*call)(Mcp *mcp, JsonDocument *message); /* takes over the message */
} requests[] = {
        { "initialize", server_initialize, NULL },
        { "ping", server_ping, NULL },
        { "tools/list", server_list_tools, NULL },
        { "tools/call", NULL, mcp_call_tool },
        { "resources/list", NULL, mcp_resources_list },
        { "resources/read", NULL, mcp_resources_read },
        { "resources/subscribe", NULL, mcp_subscribe },
        { "resources/unsubscribe", NULL, mcp_unsubscribe },
        { "resources/templates/list", server_list_templates, NULL },
};

void mcp_serve_held(Mcp *mcp, JsonDocument *message) {
        const char *method = json_member_text(json_root(message), "method");

        for (size_t i = 0; i < ELEMENTSOF(requests); i++)
                if (streq(requests[i].method, method))
                        return requests[i].call(mcp, message);
}

void mcp_refuse(Mcp *mcp, const JsonValue *root, const char *text) {
        _cleanup_(json_write_clear) JsonWriter id = { 0 };

        json_copy(&id, NULL, json_member(root, "id"));
        if (streq(json_member_text(root, "method"), "tools/call"))
                mcp_tell(mcp, &id, text);
        else
                mcp_fail(mcp, &id, MCP_INTERNAL_ERROR, text);
}

/* Takes over the message. */
static void server_take_request(Mcp *mcp, const char *method, JsonDocument *message) {
        _cleanup_(json_freep) JsonDocument *owned = message;
        _cleanup_(json_write_clear) JsonWriter id = { 0 };
        const JsonValue *root = json_root(message);

        json_copy(&id, NULL, json_member(root, "id"));
        if (!mcp->initialized && !streq(method, "initialize") && !streq(method, "ping"))
                return mcp_fail(mcp, &id, MCP_INVALID_REQUEST, "the first request is initialize");
        for (size_t i = 0; i < ELEMENTSOF(requests); i++) {
                if (!streq(requests[i].method, method))
                        continue;
                if (!requests[i].call)
                        return requests[i].reply(mcp, &id, json_member(root, "params"));
                if (!mcp_workspace_is_ready(mcp))
                        return mcp_workspace_hold(mcp, TAKE_PTR(owned));
                return requests[i].call(mcp, TAKE_PTR(owned));
        }
        mcp_fail(mcp, &id, MCP_UNKNOWN_METHOD, "unknown method");
}

static bool server_is_id(const JsonValue *id) {
        return json_type(id) == JSON_STRING || json_type(id) == JSON_NUMBER;
}

static void server_refuse(Mcp *mcp, const FramingLine *line, int code, const char *message) {
        _cleanup_(json_write_clear) JsonWriter id = { 0 };
        const bool found = line->bytes && peek_message_id(line->bytes, line->length, &id);

        _cleanup_free_ char *text =
                strstr(message, "\\u0000")
                        ? str_format("%s; the tool upload takes any bytes, in base64", message)
                        : NULL;

        mcp_fail(mcp, found ? &id : NULL, code, text ? text : message);
}

static void server_take_answer(Mcp *mcp, const JsonValue *root) {
        uint64_t id;

        if (json_uint(json_member(root, "id"), JSON_INTEGER_MAX, &id) == 0 &&
            !mcp_workspace_take_answer(mcp, id, root))
                mcp_take_answer(mcp, id, root);
}

static void server_on_line(void *data, const FramingLine *line) {
        Mcp *mcp = data;
        _cleanup_(json_freep) JsonDocument *message = NULL;
        const JsonValue *root, *id;
        const char *method;
        Error error;

        if (mcp->loop.ended)
                return;
        if (!line->bytes || line->length > MCP_LINE_MAX)
                return server_refuse(mcp, line, MCP_INVALID_REQUEST,
                                     "the message is longer than 1 MiB");
        if (json_parse_large(line->bytes, line->length, MCP_LINE_MAX, "message", &message, &error) <
            0)
                return server_refuse(mcp, line, MCP_PARSE_ERROR, error.text);
        root = json_root(message);
        id = json_member(root, "id");
        method = json_member_string(root, "method");
        if (json_type(root) != JSON_OBJECT || (id && !server_is_id(id)) || (!method && !id))
                return mcp_fail(mcp, NULL, MCP_INVALID_REQUEST, "the message is no request");
        if (!method)
                return server_take_answer(mcp, root);
        if (id)
                return server_take_request(mcp, method, TAKE_PTR(message));
        if (streq(method, "notifications/roots/list_changed"))
                mcp_workspace_changed(mcp);
        id = json_member(json_member(root, "params"), "requestId");
        if (streq(method, "notifications/cancelled") && !mcp_held_cancel(mcp, id))
                mcp_call_cancel(mcp, id);
}

/* --- the loop --- */

static void server_on_close(void *data) {
        ((Mcp *)data)->loop.ended = true;
}

static int server_before_wait(void *data) {
        const int times[] = { mcp_subscriptions_wait(data), mcp_waits_left(data),
                              mcp_workspace_left(data) };
        int first = -1;

        for (size_t i = 0; i < ELEMENTSOF(times); i++)
                if (times[i] >= 0 && (first < 0 || times[i] < first))
                        first = times[i];
        return first;
}

int mcp_run(const McpSettings *settings, Error *reterr) {
        static const ClientLoopFns fns = { server_on_line, server_on_close, mcp_keeper_take,
                                           mcp_keeper_lost, server_before_wait };
        static Mcp mcp;
        const Error gone = { .kind = ERROR_SETUP, .text = "holt mcp has ended" };
        int r;

        mcp.settings = *settings;
        r = client_loop_init(&mcp.loop, &fns, &mcp, MCP_PEEK_MAX, reterr);
        if (r == 0)
                r = client_loop_run(&mcp.loop, reterr);
        mcp.loop.ended = true;
        mcp_questions_free(&mcp);
        mcp_subscriptions_free(&mcp);
        mcp_held_free(&mcp);
        mcp_keeper_lost(&mcp, &gone);
        client_loop_clear(&mcp.loop);
        return r;
}
