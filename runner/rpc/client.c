/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/list.h"
#include "base/strings.h"
#include "policy/layers.h"
#include "rpc/input.h"
#include "rpc/queue.h"

enum { ERRNO_MAX = 4095 }; /* MAX_ERRNO of the kernel */

static_assert(ELEMENTSOF(((RpcMessage *)NULL)->fds) == RPC_FDS_MAX, "a message's fds");

#define MESSAGE_NONE                                                                               \
        (RpcMessage) {                                                                             \
                .fds = { FD_NONE, FD_NONE, FD_NONE, FD_NONE }                                      \
        }

typedef struct Kept {
        struct Kept *next;
        RpcMessage message;
} Kept;

struct RpcClient {
        int fd; /* owned */
        uint64_t last_id;
        RpcInput input;
        bool queued;
        RpcQueue queue;
        Kept *kept; /* messages in the order of their arrival; owned */
};

int rpc_client_new(int fd, RpcClient **ret, Error *reterr) {
        RpcClient *client = calloc(1, sizeof(*client));

        if (!client)
                return error_oom(reterr);
        client->fd = client->input.fd = fd;
        client->input.socket = true;
        client->queue.fd = fd;
        client->queue.socket = true;
        client->input.framing.max = RPC_ANSWER_MAX;
        *ret = client;
        return 0;
}

static void drop_first(RpcClient *client) {
        Kept *first = client->kept;

        client->kept = first->next;
        rpc_message_clear(&first->message);
        free(first);
}

RpcClient *rpc_client_free(RpcClient *client) {
        if (!client)
                return NULL;
        while (client->kept)
                drop_first(client);
        rpc_input_clear(&client->input);
        rpc_queue_clear(&client->queue);
        (void)fd_close(client->fd);
        free(client);
        return NULL;
}

int rpc_client_fd(const RpcClient *client) {
        return client->fd;
}

/* --- requests --- */

static int send_all(int fd, const char *bytes, size_t length, const int *fds, size_t count) {
        while (length > 0) {
                struct iovec iov = { (void *)bytes, length };
                ssize_t n = rpc_send_message(fd, &iov, 1, fds, count, true);

                if (n < 0 && n != -EINTR)
                        return (int)n;
                if (n < 0)
                        continue;
                bytes += n;
                length -= (size_t)n;
                count = 0;
        }
        return 0;
}

static int client_send_line(RpcClient *client, const JsonWriter *w, const int *fds, size_t count) {
        if (!client->queued)
                return send_all(client->fd, w->data, w->length, fds, count);
        if (client->queue.bytes + w->length > RPC_CLIENT_QUEUE_MAX)
                return -ENOBUFS;
        return rpc_queue_send(&client->queue, w->data, w->length, fds, count);
}

void rpc_client_queue(RpcClient *client) {
        client->queued = true;
}

size_t rpc_client_queued(const RpcClient *client) {
        return client->queue.bytes;
}

bool rpc_client_waits(const RpcClient *client) {
        return !rpc_queue_empty(&client->queue);
}

int rpc_client_flush(RpcClient *client) {
        return rpc_queue_flush(&client->queue);
}

int rpc_client_send(RpcClient *client, const char *method, const JsonWriter *params, const int *fds,
                    size_t fds_count, uint64_t *ret_id, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        int r;

        json_write_object(&w, NULL);
        json_write_string(&w, "jsonrpc", "2.0");
        json_write_uint(&w, "id", client->last_id + 1);
        json_write_string(&w, "method", method);
        if (params)
                json_write_value(&w, "params", params);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        r = client_send_line(client, &w, fds, fds_count);
        if (r < 0)
                return error_set(reterr, ERROR_SETUP, -r, "%s: cannot send the request", method);
        *ret_id = ++client->last_id;
        return 0;
}

int rpc_client_answer(RpcClient *client, const char *request, const JsonWriter *result,
                      const JsonWriter *error, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        int r;

        json_write_object(&w, NULL);
        json_write_string(&w, "jsonrpc", "2.0");
        json_write_string(&w, "id", request);
        json_write_value(&w, result ? "result" : "error", result ? result : error);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        r = client_send_line(client, &w, NULL, 0);
        return r < 0 ? error_set(reterr, ERROR_SETUP, -r, "cannot send a reply") : 0;
}

/* --- messages --- */

void rpc_message_clear(RpcMessage *message) {
        for (size_t i = 0; i < ELEMENTSOF(message->fds); i++)
                message->fds[i] = fd_close(message->fds[i]);
        json_free(message->document);
        *message = MESSAGE_NONE;
}

static ErrorKind kind_from_name(const char *name) {
        for (ErrorKind kind = 0; name && kind < ERROR_KIND_MAX; kind++)
                if (streq(error_kind_name(kind), name))
                        return kind;
        return ERROR_SETUP;
}

static int errno_from_name(const char *name) {
        for (int errnum = 1; name && errnum <= ERRNO_MAX; errnum++)
                if (streq(error_errno_name(errnum), name))
                        return errnum;
        return 0;
}

/* Rebuilds the error that the server sent. */
static void read_error(const JsonValue *value, Error *reterr) {
        const JsonValue *data = json_member(value, "data");
        const char *message = json_member_string(value, "message"), *hint, *layer;

        (void)error_set(reterr, kind_from_name(json_member_string(data, "kind")),
                        errno_from_name(json_member_string(data, "errno")), "%s",
                        message ? message : "an error without a message");
        hint = json_member_string(data, "command_hint");
        if (!hint)
                hint = json_member_string(data, "hint");
        if (hint)
                (void)error_cure(reterr, 0, "%s", hint);
        layer = json_member_string(data, "layer");
        if (reterr && layer)
                reterr->layer = (int)layer_from_name(layer);
}

static int protocol_error(Error *reterr, int errnum, const char *what) {
        (void)error_set(reterr, ERROR_PROTOCOL, errnum, "%s", what);
        return errnum ? -errnum : -EPROTO;
}

static int read_message(RpcMessage *message, Error *reterr) {
        const JsonValue *root = json_root(message->document), *id, *error;

        if (json_type(root) != JSON_OBJECT)
                return protocol_error(reterr, 0,
                                      "the server has sent a line that is not a valid message");
        message->method = json_member_string(root, "method");
        message->params = json_member(root, "params");
        message->result = json_member(root, "result");
        id = json_member(root, "id");
        (void)json_uint(id, JSON_INTEGER_MAX, &message->id);
        message->request = message->method ? json_member_string(root, "id") : NULL;
        error = json_member(root, "error");
        if (error && !message->result)
                read_error(error, reterr);
        if (!message->method && !message->result && !error)
                return protocol_error(reterr, 0,
                                      "the server has sent a line that is not a valid message");
        return 0;
}

static int take_line(const FramingLine *line, RpcFds *fds, RpcMessage *ret, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = MESSAGE_NONE;
        int r;

        for (size_t i = 0; i < fds->count; i++)
                message.fds[i] = fds->fds[i];
        if (!line->bytes)
                return protocol_error(reterr, EMSGSIZE,
                                      "the server has sent a message of more than 32 MiB");
        if (fds->refused)
                return protocol_error(reterr, EMFILE,
                                      "cannot receive the file descriptors of a message");
        r = json_parse_large(line->bytes, line->length, RPC_ANSWER_MAX, "answer", &message.document,
                             reterr);
        if (r == -EINVAL && reterr)
                reterr->kind = ERROR_PROTOCOL;
        if (r < 0)
                return r;
        r = read_message(&message, reterr);
        if (r < 0)
                return r;
        *ret = message;
        message = MESSAGE_NONE;
        return 0;
}

/* Waits until the socket is ready, and sends queued bytes. True if there is something to read. */
static bool wait_queued(RpcClient *client) {
        struct pollfd p = { .fd = client->fd, .events = POLLIN | POLLOUT };

        if (poll(&p, 1, -1) < 0)
                return false;
        if (p.revents & POLLOUT && rpc_client_flush(client) < 0)
                return true; /* reading will report the end of the connection */
        return p.revents & ~POLLOUT;
}

static int client_receive(RpcClient *client, bool wait, RpcMessage *ret, Error *reterr) {
        FramingLine line;
        RpcFds fds;

        while (!rpc_input_next(&client->input, &line, &fds)) {
                ssize_t n;

                if (wait && rpc_client_waits(client) && !wait_queued(client))
                        continue;
                n = rpc_input_read(&client->input, wait);

                if (n == -EAGAIN)
                        return -EAGAIN;
                if (n == 0 || n == -ECONNRESET)
                        return protocol_error(reterr, n < 0 ? ECONNRESET : EPIPE,
                                              "the server has closed the connection");
                if (n < 0)
                        return error_set(reterr, ERROR_SETUP, (int)-n, "cannot read a reply");
        }
        return take_line(&line, &fds, ret, reterr);
}

int rpc_client_next(RpcClient *client, bool wait, RpcMessage *ret, Error *reterr) {
        if (!client->kept)
                return client_receive(client, wait, ret, reterr);
        *ret = client->kept->message;
        client->kept->message = MESSAGE_NONE;
        drop_first(client);
        return 0;
}

/* Kept messages need no limit here: the server limits its unanswered requests. */
static int client_keep(RpcClient *client, RpcMessage *message, Error *reterr) {
        Kept *kept;

        if (!client->queued || !message->method)
                return 0;
        kept = calloc(1, sizeof(*kept));
        if (!kept)
                return error_oom(reterr);
        kept->message = *message;
        *message = MESSAGE_NONE;
        list_append(&client->kept, kept);
        return 0;
}

bool rpc_message_answers(const RpcMessage *message, uint64_t id) {
        bool about_all = message->id == 0 && !message->result;

        return !message->method && (message->id == id || about_all);
}

/* A server that refuses a client sends an error before it closes the connection. */
static int why_gone(RpcClient *client, Error *reterr) {
        RpcMessage message = MESSAGE_NONE;
        Error error;

        if (rpc_client_next(client, false, &message, &error) < 0)
                return -ECONNRESET;
        if (reterr && rpc_message_answers(&message, 0))
                *reterr = error;
        rpc_message_clear(&message);
        return -EPIPE;
}

int rpc_client_call(RpcClient *client, const char *method, const JsonWriter *params, const int *fds,
                    size_t fds_count, RpcMessage *ret, Error *reterr) {
        Error error = { 0 };
        uint64_t id = 0;
        int r;

        r = rpc_client_send(client, method, params, fds, fds_count, &id, reterr);
        if (r == -EPIPE || r == -ECONNRESET)
                return why_gone(client, reterr);
        if (r < 0)
                return r;
        for (;;) {
                _cleanup_(rpc_message_clear) RpcMessage message = MESSAGE_NONE;

                r = client_receive(client, true, &message, &error);
                if (r == 0 && !rpc_message_answers(&message, id)) {
                        r = client_keep(client, &message, reterr);
                        if (r < 0)
                                return r;
                        continue;
                }
                if (r == 0 && message.result) {
                        *ret = message;
                        message = MESSAGE_NONE;
                        return 0;
                }
                if (reterr)
                        *reterr = error;
                if (r == 0)
                        r = error.errnum > 0 ? -error.errnum : -EINVAL;
                return r;
        }
}
