/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/nearest.h"
#include "policy/layers.h"
#include "rpc/connection.h"
#include "rpc/hints.h"
#include "rpc/peek.h"

/* --- replies as JSON --- */

/* take_id() allows strings, integers and null only. */
static void write_id(JsonWriter *w, const JsonValue *id) {
        int64_t number;

        if (id && json_string(id))
                json_write_string(w, "id", json_string(id));
        else if (id && json_int(id, &number) == 0)
                json_write_int(w, "id", number);
        else
                json_write_null(w, "id");
}

static void write_head(JsonWriter *w, const JsonValue *id) {
        json_write_object(w, NULL);
        json_write_string(w, "jsonrpc", "2.0");
        write_id(w, id);
}

static void write_hint(JsonWriter *w, const Error *error, bool commands) {
        Error told = *error;

        hint_for_methods(&told);
        json_write_string(w, "hint", told.cure[0] ? told.cure : NULL);
        if (commands && !streq(told.cure, error->cure))
                json_write_string(w, "command_hint", error->cure);
}

void rpc_write_error(JsonWriter *w, const JsonValue *id, RpcErrorName name, const Error *error,
                     const char *path, bool commands) {
        const RpcErrorRow *row = rpc_error_row(name ? (unsigned)name : (unsigned)error->kind);

        write_head(w, id);
        json_write_object(w, "error");
        json_write_int(w, "code", row->code);
        json_write_string(w, "message", error->text);
        json_write_object(w, "data");
        json_write_string(w, "name", row->name);
        json_write_string(w, "kind", error_kind_name(error->kind));
        json_write_string(w, "errno", error->errnum > 0 ? error_errno_name(error->errnum) : NULL);
        write_hint(w, error, commands);
        if (error->kind == ERROR_LAYER)
                json_write_string(w, "layer", layer_table[error->layer].name);
        if (path)
                json_write_string(w, "path", path);
        json_write_end(w);
        json_write_end(w);
        json_write_end(w);
        (void)json_write_finish(w);
}

/* Without a reply, the client would wait for ever. If memory for it is out, the connection is
 * closed.
 */
void rpc_send_error(RpcConnection *c, const JsonValue *id, RpcErrorName name, const Error *error,
                    const char *path) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        rpc_write_error(&w, id, name, error, path, c->server->tells_commands);
        if (w.error < 0)
                c->broken = true;
        else
                (void)rpc_connection_send(c, w.data, w.length, NULL, 0);
}

/* --- calls --- */

static RpcCall *call_free(RpcCall *call) {
        if (!call)
                return NULL;
        rpc_fds_close(&call->fds);
        json_write_clear(&call->answer);
        strlist_clear(&call->decoded);
        json_free(call->document);
        free(call);
        return NULL;
}

static void call_freep(RpcCall **call) {
        *call = call_free(*call);
}

static void call_link(RpcCall *call) {
        RpcConnection *c = call->connection;

        call->next = c->calls;
        if (call->next)
                call->next->previous = call;
        c->calls = call;
        c->calls_count++;
        c->calls_bytes += call->bytes;
}

static void call_unlink(RpcCall *call) {
        RpcConnection *c = call->connection;

        if (call->previous)
                call->previous->next = call->next;
        else
                c->calls = call->next;
        if (call->next)
                call->next->previous = call->previous;
        c->calls_count--;
        c->calls_bytes -= call->bytes;
}

static void tell_answer(RpcCall *call, const Error *error) {
        const RpcServer *server = call->connection->server;

        if (!call->told && server->on_answer)
                server->on_answer(call, error, server->data);
        call->told = true;
}

void rpc_call_end(RpcCall *call) {
        Error error;

        (void)error_set(&error, ERROR_SETUP, ECANCELED, "the connection has ended");
        tell_answer(call, &error);
        call_unlink(call);
        call->ended = true;
        if (call->on_end)
                call->on_end(call, call->on_end_data);
        (void)call_free(call);
}

void rpc_call_on_end(RpcCall *call, void (*fn)(RpcCall *call, void *data), void *data) {
        call->on_end = fn;
        call->on_end_data = data;
}

RpcConnection *rpc_call_connection(const RpcCall *call) {
        return call->connection;
}

const RpcMethod *rpc_call_method(const RpcCall *call) {
        return call->method;
}

bool rpc_call_is_gone(const RpcCall *call) {
        struct pollfd p = { .fd = call->connection->out_fd };

        return call->connection->broken || (poll(&p, 1, 0) > 0 && p.revents);
}

bool rpc_call_has_room(const RpcCall *call) {
        return rpc_has_room(call->connection);
}

uint64_t rpc_call_started_ms(const RpcCall *call) {
        return call->started_ms;
}

int rpc_take_fd(RpcCall *call, size_t i) {
        return i < call->fds.count ? TAKE_FD(call->fds.fds[i]) : FD_NONE;
}

/* --- replies --- */

JsonWriter *rpc_result(RpcCall *call) {
        if (call->answer.depth == 0) {
                write_head(&call->answer, call->id);
                json_write_object(&call->answer, "result");
        }
        return &call->answer;
}

static void call_finish(RpcCall *call) {
        RpcConnection *c = call->connection;

        assert(!call->ended);
        call_unlink(call);
        (void)call_free(call);
        rpc_connection_settle(c);
}

void rpc_fail_at(RpcCall *call, const char *path, const Error *error) {
        tell_answer(call, error);
        if (call->id)
                rpc_send_error(call->connection, call->id, 0, error, path);
        call_finish(call);
}

void rpc_fail(RpcCall *call, const Error *error) {
        rpc_fail_at(call, NULL, error);
}

static int call_check_room(const RpcCall *call, size_t length, Error *reterr) {
        if (length > RPC_ANSWER_MAX) {
                (void)error_set(reterr, ERROR_LIMIT, EMSGSIZE,
                                "%s: the reply has %zu MiB, and may have at most %d MiB",
                                call->method->name, (length >> 20) + 1, RPC_ANSWER_MAX >> 20);
                return error_cure(reterr, -EMSGSIZE,
                                  "Ask for a part of it. Binary data is shortest in base64.");
        }
        if (length <= RPC_ANSWER_SMALL || call->connection->queue.bytes <= RPC_QUEUE_MAX)
                return 0;
        (void)error_set(reterr, ERROR_LIMIT, EBUSY,
                        "%s: the client has not read the last %d MiB of replies",
                        call->method->name, RPC_QUEUE_MAX >> 20);
        return error_cure(reterr, -EBUSY, "Read them first.");
}

static int send_answer(RpcCall *call, const int *fds, size_t count, Error *reterr) {
        JsonWriter *w = rpc_result(call);
        int r;

        json_write_end(w);
        json_write_end(w);
        if (json_write_finish(w) < 0)
                return error_oom(reterr);
        if (!call->id)
                return 0;
        r = call_check_room(call, w->length, reterr);
        if (r < 0)
                return r;
        if (count > 0 && !call->connection->passes_fds)
                return error_set(reterr, ERROR_USAGE, 0,
                                 "%s: the reply has file descriptors, which can only be sent over "
                                 "a unix socket",
                                 call->method->name);
        r = rpc_connection_send(call->connection, w->data, w->length, fds, count);
        if (r < 0)
                return error_set(reterr, ERROR_LIMIT, -r,
                                 "%s: cannot send the file descriptors of the reply",
                                 call->method->name);
        return 0;
}

void rpc_reply_fds(RpcCall *call, const int *fds, size_t count) {
        Error error;

        tell_answer(call, NULL);
        if (send_answer(call, fds, count, &error) < 0)
                return rpc_fail(call, &error);
        call_finish(call);
}

void rpc_reply(RpcCall *call) {
        rpc_reply_fds(call, NULL, 0);
}

void rpc_reply_empty(RpcCall *call) {
        (void)rpc_result(call);
        rpc_reply(call);
}

struct RpcLast {
        int fd; /* owned; a duplicate of the connection's out_fd */
        JsonWriter answer;
};

static RpcLast *last_free(RpcLast *last) {
        (void)fd_close(last->fd);
        json_write_clear(&last->answer);
        free(last);
        return NULL;
}

RpcLast *rpc_reply_last(RpcCall *call) {
        RpcConnection *c = call->connection;
        RpcLast *last = calloc(1, sizeof(*last));

        (void)rpc_result(call);
        tell_answer(call, NULL);
        if (last) {
                last->fd = fcntl(c->out_fd, F_DUPFD_CLOEXEC, 3);
                last->answer = call->answer;
                call->answer = (JsonWriter){ 0 };
                if (last->fd < 0 || !call->id || c->broken || rpc_queue_flush(&c->queue) < 0 ||
                    !rpc_queue_empty(&c->queue))
                        last = last_free(last);
        }
        call_finish(call);
        return last;
}

JsonWriter *rpc_last_result(RpcLast *last) {
        return last ? &last->answer : NULL;
}

RpcLast *rpc_last_send(RpcLast *last) {
        struct iovec line;

        if (!last)
                return NULL;
        json_write_end(&last->answer);
        json_write_end(&last->answer);
        if (json_write_finish(&last->answer) == 0) {
                line = (struct iovec){ last->answer.data, last->answer.length };
                (void)rpc_send_message(last->fd, &line, 1, NULL, 0, false);
        }
        return last_free(last);
}

/* --- requests --- */

/* Why a request is not executed. */
typedef struct Refusal {
        RpcErrorName name; /* 0: the name of the error's kind */
        char *path;        /* JSON path of the wrong parameter, or NULL; owned */
        Error error;
} Refusal;

static int call_refuse(Refusal *refusal, RpcErrorName name, int r) {
        refusal->name = name;
        return r;
}

/* Refuses fractions, which would come back as other numbers. */
static int take_id(RpcCall *call, const JsonValue *id, Error *reterr) {
        int64_t number;

        if (!id)
                return 0;
        if (json_type(id) != JSON_STRING && json_type(id) != JSON_NULL && json_int(id, &number) < 0)
                return error_set(reterr, ERROR_PROTOCOL, 0,
                                 "id must be a string, an integer or null");
        call->id = id;
        return 0;
}

static int check_members(const JsonValue *root, Error *reterr) {
        static const char *const names[] = { "jsonrpc", "id", "method", "params" };

        for (const JsonValue *member = json_first(root); member; member = json_next(member)) {
                Nearest nearest = { .word = json_key(member) };
                char quoted[80];
                bool known = false;

                for (size_t i = 0; i < ELEMENTSOF(names); i++)
                        known |= streq(names[i], json_key(member));
                if (known)
                        continue;
                for (size_t i = 0; i < ELEMENTSOF(names); i++)
                        nearest_try(&nearest, names[i]);
                (void)error_set(reterr, ERROR_PROTOCOL, 0, "a request has no field \"%s\"",
                                str_quote(json_key(member), quoted, sizeof(quoted)));
                return nearest.best
                               ? error_cure(reterr, -EINVAL, "Did you mean \"%s\"?", nearest.best)
                               : error_cure(reterr, -EINVAL,
                                            "Its fields are jsonrpc, id, method and params.");
        }
        return 0;
}

static int check_request(RpcCall *call, Error *reterr) {
        const JsonValue *root = json_root(call->document), *version, *method;
        int r;

        if (json_type(root) != JSON_OBJECT) {
                (void)error_set(reterr, ERROR_PROTOCOL, 0, "a request must be an object, not %s",
                                json_type_name(json_type(root)));
                return error_cure(reterr, -EINVAL,
                                  "Send one request per line. Batches are not supported.");
        }
        r = take_id(call, json_member(root, "id"), reterr);
        if (r < 0)
                return r;
        version = json_member(root, "jsonrpc");
        if (!version || !json_string(version) || !streq(json_string(version), "2.0"))
                return error_set(reterr, ERROR_PROTOCOL, 0, "jsonrpc must be \"2.0\"");
        method = json_member(root, "method");
        if (!method || !json_string(method))
                return error_set(reterr, ERROR_PROTOCOL, 0, "method must be a string");
        return check_members(root, reterr);
}

static int find_method(RpcCall *call, Error *reterr) {
        const RpcServer *server = call->connection->server;
        const char *name = json_string(json_member(json_root(call->document), "method"));
        Nearest nearest = { .word = name };
        char quoted[80];

        for (size_t i = 0; i < server->methods_count; i++)
                if (streq(server->methods[i].name, name)) {
                        call->method = &server->methods[i];
                        return 0;
                }
        for (size_t i = 0; i < server->methods_count; i++)
                nearest_try(&nearest, server->methods[i].name);
        (void)error_set(reterr, ERROR_USAGE, 0, "no method is called \"%s\"",
                        str_quote(name, quoted, sizeof(quoted)));
        if (nearest.best)
                (void)error_cure(reterr, 0, "Did you mean \"%s\"?", nearest.best);
        return -EINVAL;
}

static int check_limits(const RpcCall *call, Error *reterr) {
        const RpcConnection *c = call->connection;

        if (call->fds.refused)
                return error_set(reterr, ERROR_LIMIT, EMFILE,
                                 "the request came with more than %d file descriptors, or more "
                                 "than the server may open",
                                 RPC_FDS_MAX);
        if (c->calls_count < RPC_CALLS_MAX &&
            (c->calls_count == 0 || c->calls_bytes + call->bytes <= RPC_PENDING_MAX))
                return 0;
        (void)error_set(reterr, ERROR_LIMIT, EBUSY,
                        "busy: %zu requests of this connection still await their replies",
                        c->calls_count);
        return error_cure(reterr, -EBUSY, "Wait for replies, or open another connection.");
}

static int check_call(RpcCall *call, Refusal *refusal) {
        int r;

        r = check_request(call, &refusal->error);
        if (r < 0)
                return call_refuse(refusal, RPC_NO_REQUEST, r);
        r = find_method(call, &refusal->error);
        if (r < 0)
                return call_refuse(refusal, RPC_NO_METHOD, r);
        call->params = json_member(json_root(call->document), "params");
        r = rpc_check_params(call->method, call->params, &refusal->path, &refusal->error);
        if (r < 0)
                return call_refuse(refusal, RPC_BAD_PARAMS, r);
        return call_refuse(refusal, 0, check_limits(call, &refusal->error));
}

static int parse_call(RpcConnection *c, const char *bytes, size_t length, RpcCall **ret,
                      Error *reterr) {
        _cleanup_(call_freep) RpcCall *call = calloc(1, sizeof(*call));
        int r;

        if (!call)
                return error_oom(reterr);
        call->paths = &call->decoded;
        r = json_parse(bytes, length, "request", &call->document, reterr);
        if (r < 0)
                return r;
        call->connection = c;
        call->bytes = length;
        *ret = TAKE_PTR(call);
        return 0;
}

/* A refused notification gets no reply. A message that is not a request gets one, even without an
 * id. */
static void answer_refusal(RpcConnection *c, const RpcCall *call, const Refusal *refusal) {
        if (call->id || refusal->name == RPC_NO_REQUEST)
                rpc_send_error(c, call->id, refusal->name, &refusal->error, refusal->path);
}

static int read_call(RpcConnection *c, const FramingLine *line, RpcCall **ret, Refusal *refusal) {
        int r;

        if (!line->bytes) {
                r = error_set(&refusal->error, ERROR_LIMIT, EMSGSIZE,
                              "request: the line is longer than %d KiB", RPC_LINE_MAX >> 10);
                (void)error_cure(&refusal->error, r,
                                 "Base64 is a third longer than its bytes. Write longer data to a "
                                 "file, in parts or through a file descriptor.");
                return call_refuse(refusal, RPC_NO_REQUEST, r);
        }
        r = parse_call(c, line->bytes, line->length, ret, &refusal->error);
        if (r == -ENOMEM)
                return r;
        refusal->error.kind = ERROR_PROTOCOL;
        return call_refuse(refusal, RPC_NO_JSON, r);
}

static void call_execute(RpcCall *call) {
        struct timespec now;
        Error error = { 0 };

        (void)clock_gettime(CLOCK_REALTIME, &now);
        call->started_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
        call_link(call);
        if (call->method->function(call, call->connection->server->data, &error) < 0)
                rpc_fail(call, &error);
}

/* Handles a line that cannot be parsed. The error has the request's id if the first bytes show it,
 * because its sender waits for this id. If the line was a reply, its request fails instead. */
static void refuse_line(RpcConnection *c, const FramingLine *line, const Refusal *refusal) {
        char head[FRAMING_HEAD_MAX + 1], why[sizeof(refusal->error.text) + 40];
        _cleanup_(json_freep) JsonDocument *document = NULL;
        const JsonValue *id;

        static_assert(RPC_LINE_MAX == 1 << 20, "the message says so");
        if (line->bytes) {
                (void)snprintf(head, sizeof(head), "%.*s",
                               (int)(line->length < sizeof(head) ? line->length : sizeof(head) - 1),
                               line->bytes);
                (void)snprintf(why, sizeof(why), "the reply cannot be parsed: %s",
                               refusal->error.text);
        } else {
                (void)strcpy(head, line->head);
                (void)strcpy(why, "the reply is larger than 1 MiB");
        }
        if (rpc_take_bad_answer(c, head, why))
                return;
        document = rpc_peek(head);
        id = document ? json_member(json_root(document), "id") : NULL;
        if (id && json_type(id) != JSON_STRING && json_type(id) != JSON_NUMBER)
                id = NULL;
        rpc_send_error(c, id, refusal->name, &refusal->error, refusal->path);
}

void rpc_call_line(RpcConnection *c, const FramingLine *line, RpcFds *fds) {
        _cleanup_(call_freep) RpcCall *call = NULL;
        Refusal refusal = { 0 };
        int r;

        r = read_call(c, line, &call, &refusal);
        if (r < 0) {
                rpc_fds_close(fds);
                refuse_line(c, line, &refusal);
                free(refusal.path);
                return;
        }
        assert(call);
        call->fds = *fds;
        if (rpc_take_answer(c, json_root(call->document)))
                return;
        if (check_call(call, &refusal) == 0)
                call_execute(TAKE_PTR(call));
        else
                answer_refusal(c, call, &refusal);
        free(refusal.path);
}
