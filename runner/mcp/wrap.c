/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/wrap.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/json-write.h"
#include "base/json.h"
#include "base/list.h"
#include "base/strings.h"
#include "keeper/connect.h"
#include "mcp/mcp-internal.h"
#include "mcp/out.h"
#include "mcp/peek.h"
#include "rpc/client.h"
#include "rpc/framing.h"

enum {
        WRAP_LINE_MAX = 8 << 20,   /* bytes of a message of the server */
        WRAP_SENT_MAX = 512 << 10, /* bytes of a message of the client */
        WRAP_REFUSALS_MAX = 16,    /* rows of the audit after a call */
        WRAP_PENDING_MAX = 256,    /* requests that await their replies */
};

typedef struct WrapRequest {
        struct WrapRequest *next;
        JsonWriter id; /* the id, in JSON */
        bool calls;    /* a call of a tool */
} WrapRequest;

/* A result of a tool, which waits for the keeper's list of refusals. */
typedef struct WrapReply {
        struct WrapReply *next;
        uint64_t asked;         /* id of the request to the keeper */
        JsonDocument *document; /* owned */
} WrapReply;

typedef struct Wrap {
        RpcClient *keeper;
        char process[32];
        uint64_t spawn; /* id of the request that starts the server */
        Framing client, server;
        WrapRequest *pending;
        unsigned pending_count;
        const char *session; /* borrowed */
        WrapReply *replies;
        uint64_t begun;   /* id of the first request for refusals */
        uint64_t refused; /* id of the last refusal that is known */
        bool closed;      /* the client has closed stdin */
        bool ended;
        int code;
        int signal_fd; /* readable after a signal that ends holt mcp */
} Wrap;

/* --- messages --- */

static void wrap_write(Wrap *wrap, JsonWriter *w) {
        if (json_write_finish(w) < 0)
                return;
        if (out_write(w->data, w->length, wrap->signal_fd) < 0) {
                wrap->code = 128 + SIGTERM;
                wrap->ended = true;
        }
}

static void wrap_write_error(JsonWriter *w, const JsonWriter *id, int code, const char *message) {
        json_write_object(w, NULL);
        json_write_string(w, "jsonrpc", "2.0");
        json_write_value(w, "id", id);
        json_write_object(w, "error");
        json_write_int(w, "code", code);
        json_write_string(w, "message", message);
        json_write_end(w);
        json_write_end(w);
}

/* Returns the id of the request. */
static uint64_t wrap_ask(Wrap *wrap, const char *method, JsonWriter *params) {
        uint64_t id = 0;
        Error error;

        json_write_end(params);
        if (json_write_finish(params) < 0 ||
            rpc_client_send(wrap->keeper, method, params, NULL, 0, &id, &error) < 0)
                wrap->ended = true;
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

static uint64_t wrap_ask_refusals(Wrap *wrap) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_string(&w, "kind", "denial");
        json_write_uint(&w, "limit", WRAP_REFUSALS_MAX);
        return wrap_ask(wrap, "audit.list", &w);
}

/* Writes a result with one more item of content. */
static void wrap_write_result(Wrap *wrap, const JsonValue *result, const JsonValue *rows,
                              JsonWriter *w) {
        json_write_object(w, "result");
        for (const JsonValue *v = json_first(result); v; v = json_next(v)) {
                if (!streq(json_key(v), "content") || json_type(v) != JSON_ARRAY) {
                        json_copy(w, json_key(v), v);
                        continue;
                }
                json_write_array(w, "content");
                for (const JsonValue *item = json_first(v); item; item = json_next(item))
                        json_copy(w, NULL, item);
                wrap->refused = mcp_content_refusals(wrap->session, rows, wrap->refused, w);
                json_write_end(w);
        }
        json_write_end(w);
}

/* rows: NULL if the refusals are not known. */
static void wrap_reply(Wrap *wrap, WrapReply *reply, const JsonValue *rows) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        for (const JsonValue *v = json_first(json_root(reply->document)); v; v = json_next(v))
                if (streq(json_key(v), "result") && json_type(v) == JSON_OBJECT)
                        wrap_write_result(wrap, v, rows, &w);
                else
                        json_copy(&w, json_key(v), v);
        json_write_end(&w);
        (void)list_remove(&wrap->replies, reply);
        (void)json_free(reply->document);
        free(reply);
        wrap_write(wrap, &w);
}

/* Takes over the document, if it returns true. */
static bool wrap_hold(Wrap *wrap, JsonDocument *document) {
        WrapReply *reply = calloc(1, sizeof(*reply));

        if (!reply)
                return false;
        reply->document = document;
        reply->asked = wrap_ask_refusals(wrap);
        list_append(&wrap->replies, reply);
        return true;
}

static void wrap_take_refusals(Wrap *wrap, uint64_t id, const JsonValue *result) {
        const JsonValue *rows = json_member(result, "rows");

        if (id == wrap->begun)
                wrap->refused = mcp_content_refusals(wrap->session, rows, 0, NULL);
        list_each_safe(reply, wrap->replies)
                if (reply->asked == id)
                        return wrap_reply(wrap, reply, rows);
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

static void wrap_take_client(Wrap *wrap, const FramingLine *line) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        _cleanup_(json_write_clear) JsonWriter id = { 0 }, w = { 0 };
        const JsonValue *root;
        Error error;

        if (!line->bytes ||
            json_parse_large(line->bytes, line->length, WRAP_SENT_MAX, "message", &document,
                             &error) < 0 ||
            json_type(json_root(document)) != JSON_OBJECT) {
                if (!line->bytes || !peek_message_id(line->bytes, line->length, &id))
                        json_write_null(&id, NULL);
                wrap_write_error(&w, &id, -32700,
                                 line->length <= WRAP_SENT_MAX && line->bytes
                                         ? "the message is not a JSON object"
                                         : "the message is longer than 512 KiB");
                return wrap_write(wrap, &w);
        }
        root = json_root(document);
        /* The server has no requests that the client could answer. */
        if (!json_member_string(root, "method"))
                return;
        if (json_member(root, "id")) {
                json_copy(&id, NULL, json_member(root, "id"));
                if (wrap_find_request(wrap, &id) ||
                    !wrap_note_request(wrap, &id,
                                       streq(json_member_string(root, "method"), "tools/call"))) {
                        wrap_write_error(&w, &id, -32600, "too many requests, or one with this id");
                        return wrap_write(wrap, &w);
                }
        }
        if (streq(json_member_string(root, "method"), "notifications/cancelled"))
                wrap_forget_request(wrap, json_member(json_member(root, "params"), "requestId"));
        json_copy(&w, NULL, root);
        wrap_send(wrap, &w);
}

static void wrap_read_client(Wrap *wrap) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        FramingLine line;
        size_t size;
        char *room;
        ssize_t n = framing_room(&wrap->client, &room, &size) < 0 ? 0
                                                                  : read(STDIN_FILENO, room, size);

        if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return;
        if (n <= 0) {
                wrap->closed = true;
                json_write_object(&w, NULL);
                json_write_string(&w, "id", wrap->process);
                (void)wrap_ask(wrap, "process.close_stdin", &w);
                return;
        }
        framing_add(&wrap->client, (size_t)n);
        while (framing_next(&wrap->client, &line))
                wrap_take_client(wrap, &line);
}

/* --- from the server --- */

static void wrap_answer_server(Wrap *wrap, const JsonValue *root, const char *method) {
        _cleanup_(json_write_clear) JsonWriter id = { 0 }, w = { 0 };

        json_copy(&id, NULL, json_member(root, "id"));
        if (!streq(method, "ping")) {
                wrap_write_error(&w, &id, -32601,
                                 "holt mcp --wrap passes no requests to the client");
                return wrap_send(wrap, &w);
        }
        json_write_object(&w, NULL);
        json_write_string(&w, "jsonrpc", "2.0");
        json_write_value(&w, "id", &id);
        json_write_object(&w, "result");
        json_write_end(&w);
        json_write_end(&w);
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
                if (calls && wrap_hold(wrap, document)) {
                        (void)TAKE_PTR(document);
                        return;
                }
        }
        json_copy(&w, NULL, root);
        wrap_write(wrap, &w);
}

/* Bytes of any size go through a buffer that grows to one message. */
static void wrap_take_output(Wrap *wrap, const char *bytes, size_t length) {
        FramingLine line;
        size_t size;
        char *room;

        for (size_t at = 0; at < length; at += size) {
                if (framing_room(&wrap->server, &room, &size) < 0) {
                        wrap->ended = true;
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

static void wrap_take_message(Wrap *wrap, const RpcMessage *message, const Error *error,
                              Error *reterr) {
        _cleanup_free_ char *bytes = NULL;
        size_t length;

        if (!message->method && message->id == wrap->spawn && !message->result) {
                *reterr = *error;
                wrap->code = -EINVAL;
                wrap->ended = true;
        } else if (!message->method && message->id == wrap->spawn)
                (void)snprintf(wrap->process, sizeof(wrap->process), "%s",
                               json_member_text(message->result, "id"));
        else if (!message->method)
                wrap_take_refusals(wrap, message->id, message->result);
        else if (message->method && streq(message->method, "process.exited")) {
                wrap->code = (int)json_member_uint(message->params, "exit_code");
                wrap->ended = true;
        } else if (message->method && streq(message->method, "process.output") &&
                   base64_decode(json_member_text(message->params, "base64"), &bytes, &length) ==
                           0) {
                if (streq(json_member_text(message->params, "stream"), "stdout"))
                        wrap_take_output(wrap, bytes, length);
                else
                        wrap_show_stderr(bytes, length);
        }
}

static void wrap_read_keeper(Wrap *wrap, Error *reterr) {
        while (!wrap->ended) {
                RpcMessage message = RPC_MESSAGE_NONE;
                Error error = { 0 };
                int r = rpc_client_next(wrap->keeper, false, &message, &error);

                if (r == -EAGAIN)
                        return;
                if (r < 0) {
                        *reterr = error;
                        wrap->code = r;
                        wrap->ended = true;
                } else
                        wrap_take_message(wrap, &message, &error, reterr);
                rpc_message_clear(&message);
        }
}

/* --- all of it --- */

static int wrap_start(Wrap *wrap, const McpSettings *settings, const char *const *argv,
                      Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        int fd, r = keeper_connect(settings->session, &fd, reterr);

        if (r < 0)
                return r;
        r = rpc_client_new(fd, &wrap->keeper, reterr);
        if (r < 0) {
                fd_close(fd);
                return r;
        }
        rpc_client_queue(wrap->keeper);
        wrap->session = settings->session;
        wrap->begun = wrap_ask_refusals(wrap);
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
                                         : rpc_client_send(wrap->keeper, "process.spawn", &w, NULL,
                                                           0, &wrap->spawn, reterr);
}

/* The client is read once the server has a process. */
static int wrap_loop(Wrap *wrap, int signal_fd, Error *reterr) {
        while (!wrap->ended) {
                const bool reads = wrap->process[0] && !wrap->closed;
                struct pollfd fds[] = { { .fd = rpc_client_fd(wrap->keeper), .events = POLLIN },
                                        { .fd = signal_fd, .events = POLLIN },
                                        { .fd = reads ? STDIN_FILENO : FD_NONE,
                                          .events = POLLIN } };

                wrap_read_keeper(wrap, reterr);
                if (wrap->ended)
                        break;
                if (wrap->process[0] && !wrap->closed)
                        fds[2].fd = STDIN_FILENO;
                if (rpc_client_waits(wrap->keeper))
                        fds[0].events |= POLLOUT;
                if (poll(fds, ELEMENTSOF(fds), -1) < 0 && errno != EINTR)
                        return error_set(reterr, ERROR_SETUP, errno, "cannot wait for the client");
                if (fds[0].revents & POLLOUT)
                        (void)rpc_client_flush(wrap->keeper);
                if (fds[1].revents)
                        return 128 + SIGTERM;
                if (fds[2].revents)
                        wrap_read_client(wrap);
        }
        return wrap->code;
}

int wrap_run(const McpSettings *settings, const char *const *argv, Error *reterr) {
        static Wrap wrap = { .client = { .max = WRAP_LINE_MAX },
                             .server = { .max = WRAP_LINE_MAX } };
        _cleanup_close_ int signal_fd = FD_NONE;
        sigset_t set;
        int r;

        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGTERM);
        (void)sigaddset(&set, SIGINT);
        (void)sigaddset(&set, SIGHUP);
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        (void)signal(SIGPIPE, SIG_IGN);
        signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (signal_fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot create a signalfd");
        wrap.signal_fd = signal_fd;
        r = wrap_start(&wrap, settings, argv, reterr);
        if (r == 0)
                r = wrap_loop(&wrap, signal_fd, reterr);
        while (wrap.replies)
                wrap_reply(&wrap, wrap.replies, NULL);
        while (wrap.pending)
                wrap_request_free(&wrap, wrap.pending);
        wrap.keeper = rpc_client_free(wrap.keeper);
        framing_clear(&wrap.client);
        framing_clear(&wrap.server);
        return r;
}
