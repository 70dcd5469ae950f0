/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/wrap.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/list.h"
#include "mcp/mcp-internal.h"
#include "mcp/peek.h"
#include "streams/tail.h"

enum {
        WRAP_LINE_MAX = 8 << 20,   /* bytes of a message of the server */
        WRAP_SENT_MAX = 512 << 10, /* bytes of a message of the client */
        WRAP_PENDING_MAX = 256,    /* requests that await their replies */
        WRAP_HELD_MAX = 16 << 20,  /* bytes of replies that wait for the keeper */
};

typedef struct WrapRequest {
        struct WrapRequest *next;
        JsonWriter id; /* the id, in JSON */
        bool calls;    /* a call of a tool */
} WrapRequest;

/* A reply to a call of a tool, which waits until the keeper has told what was refused. */
typedef struct WrapReply {
        struct WrapReply *next;
        uint64_t asked;         /* id of the request to the keeper */
        JsonDocument *document; /* owned */
        size_t length;          /* bytes of its line */
} WrapReply;

typedef struct Wrap {
        ClientLoop loop;
        char process[32];
        uint64_t spawn; /* id of the request that starts the server */
        Framing server;
        WrapRequest *pending;
        unsigned pending_count;
        const char *session; /* borrowed */
        WrapReply *replies;
        size_t held;  /* bytes of the replies */
        Tail said;    /* stderr of the server since the last question to the keeper */
        Error *error; /* borrowed: why the server did not start, or the keeper was lost */
        bool exited;  /* the server has ended */
        int code;
} Wrap;

/* --- messages --- */

static void wrap_fail(Wrap *wrap, const JsonWriter *id, int code, const char *message) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        mcp_write_error(id, code, message, &w);
        client_loop_send(&wrap->loop, &w);
}

/* Returns the id of the request. */
static uint64_t wrap_ask(Wrap *wrap, const char *method, JsonWriter *params) {
        uint64_t id = 0;
        Error error;

        json_write_end(params);
        if (json_write_finish(params) < 0 ||
            rpc_client_send(wrap->loop.keeper, method, params, NULL, 0, &id, &error) < 0)
                wrap->loop.ended = true;
        return id;
}

/* Sends a message to the server. */
static void wrap_send(Wrap *wrap, JsonWriter *message) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_free_ char *encoded = NULL;

        if (json_write_finish(message) == 0)
                encoded = base64_encode(message->data, message->length);
        json_write_object(&w, NULL);
        json_write_string(&w, "id", wrap->process);
        json_write_string(&w, "base64", encoded ? encoded : "");
        (void)wrap_ask(wrap, "process.write", &w);
}

/* --- refusals --- */

/* Adds the texts of a reply that reports a failure. Another result may have any text, such as the
 * content of a file. */
static void wrap_add_words(const JsonValue *root, Tail *words) {
        const JsonValue *result = json_member(root, "result");
        const char *message = json_member_string(json_member(root, "error"), "message");
        const JsonValue *content = json_member(result, "content");
        bool failed = false;

        (void)json_bool(json_member(result, "isError"), &failed);
        if (message)
                tail_add(words, message, strlen(message));
        if (!failed || !content || json_type(content) != JSON_ARRAY)
                return;
        for (const JsonValue *item = json_first(content); item; item = json_next(item)) {
                const char *text = json_member_text(item, "text");

                tail_add(words, text, strlen(text));
                tail_add(words, "\n", 1);
        }
}

/* Asks the keeper what was refused since the last question. Returns the id of the request. */
static uint64_t wrap_ask_refused(Wrap *wrap, const JsonValue *root) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_free_ char *encoded = NULL;

        tail_add(&wrap->said, "\n", 1);
        wrap_add_words(root, &wrap->said);
        encoded = base64_encode(wrap->said.data, wrap->said.length);
        wrap->said.length = 0;
        json_write_object(&w, NULL);
        json_write_string(&w, "id", wrap->process);
        json_write_string(&w, "stderr", encoded ? encoded : "");
        json_write_bool(&w, "running", true);
        return wrap_ask(wrap, "process.explain", &w);
}

/* Writes a result with one more item of content. */
static void wrap_write_result(const JsonValue *result, const char *line, JsonWriter *w) {
        json_write_object(w, "result");
        for (const JsonValue *v = json_first(result); v; v = json_next(v)) {
                if (!streq(json_key(v), "content") || json_type(v) != JSON_ARRAY) {
                        json_copy(w, json_key(v), v);
                        continue;
                }
                json_write_array(w, "content");
                for (const JsonValue *item = json_first(v); item; item = json_next(item))
                        json_copy(w, NULL, item);
                mcp_write_text(line, w);
                json_write_end(w);
        }
        json_write_end(w);
}

/* Writes an error whose message has one more line. */
static void wrap_write_error(const JsonValue *error, const char *line, JsonWriter *w) {
        const char *message = json_member_string(error, "message");
        _cleanup_free_ char *more = message ? str_format("%s\n%s", message, line) : NULL;

        json_write_object(w, "error");
        for (const JsonValue *v = json_first(error); v; v = json_next(v))
                if (more && streq(json_key(v), "message"))
                        json_write_string(w, "message", more);
                else
                        json_copy(w, json_key(v), v);
        json_write_end(w);
}

static void wrap_write_reply(const JsonValue *root, const char *line, JsonWriter *w) {
        json_write_object(w, NULL);
        for (const JsonValue *v = json_first(root); v; v = json_next(v))
                if (streq(json_key(v), "result") && json_type(v) == JSON_OBJECT)
                        wrap_write_result(v, line, w);
                else if (streq(json_key(v), "error") && json_type(v) == JSON_OBJECT)
                        wrap_write_error(v, line, w);
                else
                        json_copy(w, json_key(v), v);
        json_write_end(w);
}

/* refused: NULL if it is not known. */
static void wrap_reply(Wrap *wrap, WrapReply *reply, const JsonValue *refused) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        char line[MCP_REFUSED_LINE];

        if (refused && mcp_content_refused(wrap->session, refused, line))
                wrap_write_reply(json_root(reply->document), line, &w);
        else
                json_copy(&w, NULL, json_root(reply->document));
        (void)list_remove(&wrap->replies, reply);
        wrap->held -= reply->length;
        (void)json_free(reply->document);
        free(reply);
        client_loop_send(&wrap->loop, &w);
}

/* Takes over the document, if it returns true. */
static bool wrap_hold(Wrap *wrap, JsonDocument *document, size_t length) {
        WrapReply *reply = wrap->held + length <= WRAP_HELD_MAX ? calloc(1, sizeof(*reply)) : NULL;

        if (!reply)
                return false;
        reply->document = document;
        reply->length = length;
        wrap->held += length;
        reply->asked = wrap_ask_refused(wrap, json_root(document));
        list_append(&wrap->replies, reply);
        return true;
}

static void wrap_take_refused(Wrap *wrap, uint64_t id, const JsonValue *result) {
        list_each_safe(reply, wrap->replies)
                if (reply->asked == id) {
                        wrap_reply(wrap, reply, result);
                        break;
                }
        if (wrap->exited && !wrap->replies)
                wrap->loop.ended = true;
}

/* --- from the client --- */

static void wrap_request_free(Wrap *wrap, WrapRequest *request) {
        (void)list_remove(&wrap->pending, request);
        wrap->pending_count--;
        json_write_clear(&request->id);
        free(request);
}

static bool wrap_note_request(Wrap *wrap, const JsonWriter *id, bool calls) {
        WrapRequest *request = wrap->pending_count < WRAP_PENDING_MAX ? calloc(1, sizeof(*request))
                                                                      : NULL;

        if (!request)
                return false;
        json_write_value(&request->id, NULL, id);
        request->calls = calls;
        list_push(&wrap->pending, request);
        wrap->pending_count++;
        return true;
}

static WrapRequest *wrap_find_request(const Wrap *wrap, const JsonWriter *id) {
        for (WrapRequest *r = wrap->pending; r; r = r->next)
                if (r->id.data && id->data && streq(r->id.data, id->data))
                        return r;
        return NULL;
}

/* A server does not reply to a request that was cancelled. */
static void wrap_forget_request(Wrap *wrap, const JsonValue *value) {
        _cleanup_(json_write_clear) JsonWriter id = { 0 };
        WrapRequest *request;

        if (!value)
                return;
        json_copy(&id, NULL, value);
        request = wrap_find_request(wrap, &id);
        if (request)
                wrap_request_free(wrap, request);
}

static void wrap_on_line(void *data, const FramingLine *line) {
        Wrap *wrap = data;
        _cleanup_(json_freep) JsonDocument *document = NULL;
        _cleanup_(json_write_clear) JsonWriter id = { 0 }, w = { 0 };
        const JsonValue *root;
        Error error;

        if (!line->bytes ||
            json_parse_large(line->bytes, line->length, WRAP_SENT_MAX, "message", &document,
                             &error) < 0 ||
            json_type(json_root(document)) != JSON_OBJECT) {
                const bool found = line->bytes && peek_message_id(line->bytes, line->length, &id);

                return wrap_fail(wrap, found ? &id : NULL, MCP_PARSE_ERROR,
                                 line->length <= WRAP_SENT_MAX && line->bytes
                                         ? "the message is not a JSON object"
                                         : "the message is longer than 512 KiB");
        }
        root = json_root(document);
        /* The server has no requests that the client could answer. */
        if (!json_member_string(root, "method"))
                return;
        if (json_member(root, "id")) {
                json_copy(&id, NULL, json_member(root, "id"));
                if (wrap_find_request(wrap, &id) ||
                    !wrap_note_request(wrap, &id,
                                       streq(json_member_string(root, "method"), "tools/call")))
                        return wrap_fail(wrap, &id, MCP_INVALID_REQUEST,
                                         "too many requests, or one with this id");
        }
        if (streq(json_member_string(root, "method"), "notifications/cancelled"))
                wrap_forget_request(wrap, json_member(json_member(root, "params"), "requestId"));
        json_copy(&w, NULL, root);
        wrap_send(wrap, &w);
}

static void wrap_on_close(void *data) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        Wrap *wrap = data;

        wrap->loop.deaf = true;
        json_write_object(&w, NULL);
        json_write_string(&w, "id", wrap->process);
        (void)wrap_ask(wrap, "process.close_stdin", &w);
}

/* --- from the server --- */

static void wrap_answer_server(Wrap *wrap, const JsonValue *root, const char *method) {
        _cleanup_(json_write_clear) JsonWriter id = { 0 }, w = { 0 };

        json_copy(&id, NULL, json_member(root, "id"));
        if (streq(method, "ping")) {
                mcp_reply_begin(&id, &w);
                json_write_end(&w);
                json_write_end(&w);
        } else
                mcp_write_error(&id, MCP_UNKNOWN_METHOD,
                                "holt mcp --wrap passes no requests to the client", &w);
        wrap_send(wrap, &w);
}

static void wrap_take_server(Wrap *wrap, const FramingLine *line) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        _cleanup_(json_write_clear) JsonWriter id = { 0 }, w = { 0 };
        const JsonValue *root;
        const char *method;
        WrapRequest *request;
        bool calls;
        Error error;

        if (!line->bytes || json_parse_large(line->bytes, line->length, WRAP_LINE_MAX, "message",
                                             &document, &error) < 0)
                return;
        root = json_root(document);
        method = json_member_string(root, "method");
        if (method && json_member(root, "id"))
                return wrap_answer_server(wrap, root, method);
        if (method) {
                if (!str_starts(method, "notifications/"))
                        return;
        } else {
                if (!json_member(root, "id") ||
                    !json_member(root, "result") == !json_member(root, "error"))
                        return;
                json_copy(&id, NULL, json_member(root, "id"));
                request = wrap_find_request(wrap, &id);
                if (!request)
                        return;
                calls = request->calls;
                wrap_request_free(wrap, request);
                if (calls && wrap_hold(wrap, document, line->length)) {
                        (void)TAKE_PTR(document);
                        return;
                }
        }
        json_copy(&w, NULL, root);
        client_loop_send(&wrap->loop, &w);
}

/* Bytes of any size go through a buffer that grows to one message. */
static void wrap_take_stdout(Wrap *wrap, const char *bytes, size_t length) {
        FramingLine line;
        size_t size;
        char *room;

        for (size_t at = 0; at < length; at += size) {
                if (framing_room(&wrap->server, &room, &size) < 0) {
                        wrap->loop.ended = true;
                        return;
                }
                if (size > length - at)
                        size = length - at;
                memcpy(room, bytes + at, size);
                framing_add(&wrap->server, size);
                while (framing_next(&wrap->server, &line))
                        wrap_take_server(wrap, &line);
        }
}

/* Control sequences of the server must not reach the caller's terminal. */
static void wrap_show_stderr(const char *bytes, size_t length) {
        for (size_t at = 0; at < length;) {
                const char *end = memchr(bytes + at, '\n', length - at);
                const size_t size = end ? (size_t)(end - bytes) - at : length - at;
                _cleanup_free_ char *line = strndup(bytes + at, size < 4096 ? size : 4096);
                char shown[16384];

                if (line && line[0])
                        (void)dprintf(STDERR_FILENO, "%s\n",
                                      str_visible(line, shown, sizeof(shown)));
                at += size + 1;
        }
}

static void wrap_take_output(Wrap *wrap, const JsonValue *params) {
        _cleanup_free_ char *bytes = NULL;
        size_t length;

        if (base64_decode(json_member_text(params, "base64"), &bytes, &length) < 0)
                return;
        if (streq(json_member_text(params, "stream"), "stdout"))
                return wrap_take_stdout(wrap, bytes, length);
        tail_add(&wrap->said, bytes, length);
        wrap_show_stderr(bytes, length);
}

static void wrap_take_spawned(Wrap *wrap, const JsonValue *result, const Error *error) {
        if (!result) {
                *wrap->error = *error;
                wrap->code = -EINVAL;
                wrap->loop.ended = true;
                return;
        }
        (void)snprintf(wrap->process, sizeof(wrap->process), "%s", json_member_text(result, "id"));
        wrap->loop.deaf = false;
}

static void wrap_on_message(void *data, const RpcMessage *message, const Error *error) {
        Wrap *wrap = data;

        if (!message->method && message->id == wrap->spawn)
                wrap_take_spawned(wrap, message->result, error);
        else if (!message->method)
                wrap_take_refused(wrap, message->id, message->result);
        else if (streq(message->method, "process.output"))
                wrap_take_output(wrap, message->params);
        else if (streq(message->method, "process.exited")) {
                wrap->code = (int)json_member_uint(message->params, "exit_code");
                wrap->exited = wrap->loop.deaf = true;
                wrap->loop.ended = !wrap->replies;
        }
}

static void wrap_on_lost(void *data, const Error *error) {
        Wrap *wrap = data;

        *wrap->error = *error;
        wrap->code = -EPIPE;
        wrap->loop.ended = true;
}

/* --- all of it --- */

/* The client is read once the server has a process. */
static int wrap_start(Wrap *wrap, const char *const *argv, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        int r = client_loop_connect(&wrap->loop, wrap->session, reterr);

        if (r < 0)
                return r;
        wrap->loop.deaf = true;
        json_write_object(&w, NULL);
        json_write_array(&w, "argv");
        for (; *argv; argv++)
                json_write_string(&w, NULL, *argv);
        json_write_end(&w);
        json_write_bool(&w, "input", true);
        json_write_bool(&w, "owned", true);
        json_write_bool(&w, "watch", true);
        json_write_end(&w);
        return json_write_finish(&w) < 0 ? error_oom(reterr)
                                         : rpc_client_send(wrap->loop.keeper, "process.spawn", &w,
                                                           NULL, 0, &wrap->spawn, reterr);
}

int wrap_run(const McpSettings *settings, const char *const *argv, Error *reterr) {
        static const ClientLoopFns fns = { .on_line = wrap_on_line,
                                           .on_close = wrap_on_close,
                                           .on_message = wrap_on_message,
                                           .on_lost = wrap_on_lost };
        static Wrap wrap = { .server = { .max = WRAP_LINE_MAX } };
        int r;

        wrap.session = settings->session;
        wrap.error = reterr;
        r = client_loop_init(&wrap.loop, &fns, &wrap, WRAP_LINE_MAX, reterr);
        if (r == 0)
                r = wrap_start(&wrap, argv, reterr);
        if (r == 0)
                r = client_loop_run(&wrap.loop, reterr);
        if (r == 0)
                r = wrap.loop.signalled ? 128 + SIGTERM : wrap.code;
        wrap.loop.ended = wrap.loop.signalled;
        while (wrap.replies)
                wrap_reply(&wrap, wrap.replies, NULL);
        while (wrap.pending)
                wrap_request_free(&wrap, wrap.pending);
        client_loop_clear(&wrap.loop);
        framing_clear(&wrap.server);
        return r;
}
