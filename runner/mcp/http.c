/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "base/strings.h"
#include "base/wait.h"
#include "mcp/client-loop.h"
#include "mcp/http-internal.h"

/* Time to send the head of a request, its body, and to take a complete response, in usec. */
enum { HTTP_HEAD_TIME = HOLT_WAIT(5000000), HTTP_TIME = HOLT_WAIT(30000000) };

static void http_client_free(HttpConnection *c) {
        (void)list_remove(&c->server->connections, c);
        c->server->connections_count--;
        c->watch = loop_unwatch(c->watch);
        c->timer = loop_timer_free(c->timer);
        c->fd = fd_close(c->fd);
        json_write_clear(&c->id);
        http_queue_clear(&c->out);
        free(c->in);
        free(c);
}

static void http_client_on_time(void *data) {
        http_client_free(data);
}

/* Sends what is queued. After a complete response, waits until the client closes: an earlier close
 * could drop the response. Returns false if the connection has ended. */
static bool http_client_flush(HttpConnection *c) {
        if (http_queue_send(&c->out, c->fd) < 0) {
                http_client_free(c);
                return false;
        }
        if (c->state == HTTP_ENDING && !http_queue_waits(&c->out))
                (void)shutdown(c->fd, SHUT_WR);
        loop_watch_set(c->watch, EPOLLIN | (http_queue_waits(&c->out) ? (uint32_t)EPOLLOUT : 0));
        return true;
}

static void http_client_end(HttpConnection *c) {
        c->state = HTTP_ENDING;
        loop_timer_set(c->timer, time_now_usec() + HTTP_TIME);
}

/* --- responses --- */

typedef struct HttpStatus {
        int status;
        const char *text;
        const char *why; /* what went wrong, and what to do; the body of the response */
} HttpStatus;

static const HttpStatus *http_status(int status) {
        static const HttpStatus statuses[] = {
                { 200, "OK", "" },
                { 202, "Accepted", "" },
                { 400, "Bad Request",
                  "The request is malformed, or a request before \"initialize\".\n" },
                { 401, "Unauthorized",
                  "Send the token that holt mcp has printed: Authorization: Bearer TOKEN\n" },
                { 403, "Forbidden",
                  "The Host must be 127.0.0.1 or localhost with this port, and the request must "
                  "not "
                  "come from a web page (Origin).\n" },
                { 404, "Not Found",
                  "The path is /mcp. If the path is right, the session has ended: send "
                  "\"initialize\" without Mcp-Session-Id.\n" },
                { 405, "Method Not Allowed", "The methods are GET, POST and DELETE.\n" },
                { 409, "Conflict", "Another GET has the events of this session.\n" },
                { 411, "Length Required", "Send the body with a Content-Length.\n" },
                { 413, "Content Too Large", "The body is too large.\n" },
                { 415, "Unsupported Media Type", "The body must be application/json.\n" },
                { 431, "Request Header Fields Too Large", "The head is too large.\n" },
                { 503, "Service Unavailable",
                  "There are too many sessions, or this one could not start.\n" },
        };
        size_t i = 0;

        while (i < ELEMENTSOF(statuses) - 1 && statuses[i].status != status)
                i++;
        return &statuses[i];
}

static void http_client_respond(HttpConnection *c, int status) {
        const HttpStatus *found = http_status(status);
        char text[512];
        const int n = snprintf(text, sizeof(text),
                               "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\n"
                               "Content-Length: %zu\r\nConnection: close\r\n%s\r\n%s",
                               found->status, found->text, strlen(found->why),
                               status == 401 ? "WWW-Authenticate: Bearer\r\n" : "", found->why);

        http_client_end(c);
        if (http_queue_add(&c->out, text, (size_t)n) == 0)
                (void)http_client_flush(c);
        else
                http_client_free(c);
}

static void http_client_stream(HttpConnection *c, HttpSession *session) {
        char head[256];
        const int n = snprintf(head, sizeof(head),
                               "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                               "Cache-Control: no-store\r\nMcp-Session-Id: %s\r\n"
                               "Connection: close\r\n\r\n",
                               session->id);

        c->state = HTTP_STREAMING;
        c->session = session;
        loop_timer_set(c->timer, 0);
        if (http_queue_add(&c->out, head, (size_t)n) == 0)
                (void)http_client_flush(c);
        else
                http_client_free(c);
}

static void http_client_send_event(HttpConnection *c, const FramingLine *line) {
        static const char before[] = "event: message\ndata: ", after[] = "\n\n";
        _cleanup_free_ char *event = NULL;
        char *end;

        event = malloc(strlen(before) + line->length + strlen(after));
        if (!event)
                return http_client_free(c);
        end = mempcpy(mempcpy(event, before, strlen(before)), line->bytes, line->length);
        end = mempcpy(end, after, strlen(after));
        if (http_queue_add(&c->out, event, (size_t)(end - event)) < 0)
                return http_client_free(c);
        (void)http_client_flush(c);
}

/* --- messages of a child --- */

static HttpConnection *http_find_stream(const HttpSession *session, const JsonWriter *id) {
        HttpConnection *found = NULL;

        for (HttpConnection *c = session->server->connections; c; c = c->next) {
                if (c->state != HTTP_STREAMING || c->session != session)
                        continue;
                if (id && c->id.data && streq(c->id.data, id->data))
                        return c;
                /* The newest request, or else the GET. */
                if (!id && (!found || (!found->id.data && c->id.data)))
                        found = c;
        }
        return found;
}

void http_take_message(void *data, const FramingLine *line) {
        const HttpSession *session = data;
        _cleanup_(json_freep) JsonDocument *document = NULL;
        _cleanup_(json_write_clear) JsonWriter id = { 0 };
        const JsonValue *root, *number;
        HttpConnection *c;
        Error ignored;

        if (!line->bytes || json_parse_large(line->bytes, line->length, HTTP_LINE_MAX, "message",
                                             &document, &ignored) < 0)
                return;
        root = json_root(document);
        number = json_member(root, "method") ? NULL : json_member(root, "id");
        if (number)
                json_copy(&id, NULL, number);
        /* A message without an id that the child could not read, is the one that came last. */
        c = http_find_stream(session,
                             number && json_type(number) != JSON_NULL && id.data ? &id : NULL);
        if (!c)
                return;
        if (number && c->id.data)
                http_client_end(c);
        http_client_send_event(c, line);
}

void http_end_streams(const HttpSession *session) {
        list_each_safe(c, session->server->connections)
                if (c->session == session)
                        http_client_free(c);
}

/* --- requests --- */

static void http_client_post(HttpConnection *c) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        HttpSession *session = http_session_find(c->server, c->head.session);
        const char *method;
        const JsonValue *root;
        bool begins;
        Error ignored;

        if (json_parse_large(c->in + c->head_length, c->head.body, HTTP_BODY_MAX, "body", &document,
                             &ignored) < 0 ||
            json_type(json_root(document)) != JSON_OBJECT)
                return http_client_respond(c, 400);
        root = json_root(document);
        method = json_member_string(root, "method");
        begins = method && streq(method, "initialize") && !c->head.session[0];
        if (!begins && !session)
                return http_client_respond(c, c->head.session[0] ? 404 : 400);
        if (begins && http_session_new(c->server, &session) < 0)
                return http_client_respond(c, 503);
        if (http_session_send(session, root) < 0)
                return http_client_respond(c, 503);
        if (!method || !json_member(root, "id"))
                return http_client_respond(c, 202);
        json_copy(&c->id, NULL, json_member(root, "id"));
        http_client_stream(c, session);
}

static void http_client_get(HttpConnection *c) {
        HttpSession *session = http_session_find(c->server, c->head.session);

        if (!session)
                return http_client_respond(c, c->head.session[0] ? 404 : 400);
        for (const HttpConnection *o = c->server->connections; o; o = o->next)
                if (o->session == session && !o->id.data)
                        return http_client_respond(c, 409);
        http_client_stream(c, session);
}

static void http_client_delete(HttpConnection *c) {
        HttpSession *session = http_session_find(c->server, c->head.session);

        if (!session)
                return http_client_respond(c, c->head.session[0] ? 404 : 400);
        http_session_free(session);
        http_client_respond(c, 200);
}

static void http_client_take(HttpConnection *c) {
        static void (*const methods[])(HttpConnection * c) = {
                [HTTP_POST] = http_client_post,
                [HTTP_GET] = http_client_get,
                [HTTP_DELETE] = http_client_delete,
        };

        static_assert(ELEMENTSOF(methods) == HTTP_METHOD_MAX, "every method has a function");
        methods[c->head.method](c);
}

/* Returns the length of the head, or 0 if it is not complete. */
static size_t http_client_find_head(const HttpConnection *c) {
        const char *end = memmem(c->in, c->in_length, "\r\n\r\n", 4);

        return end ? (size_t)(end - c->in) + 4 : 0;
}

static void http_client_parse(HttpConnection *c) {
        if (c->head_length == 0) {
                _cleanup_free_ char *head = NULL;
                const size_t length = http_client_find_head(c);
                int status;

                if (length == 0 && c->in_length < HTTP_HEAD_MAX)
                        return;
                if (length == 0 || length > HTTP_HEAD_MAX)
                        return http_client_respond(c, 431);
                head = strndup(c->in, length);
                status = head ? http_head_read(head, length, c->server->port, c->server->token,
                                               &c->head)
                              : 503;
                if (status != 0)
                        return http_client_respond(c, status);
                c->head_length = length;
                loop_timer_set(c->timer, time_now_usec() + HTTP_TIME);
        }
        if (c->in_length >= c->head_length + c->head.body)
                http_client_take(c);
}

/* Until the request is judged, the buffer has the size of a head. */
static void http_client_read(HttpConnection *c) {
        const size_t max = c->head_length ? c->head_length + c->head.body : HTTP_HEAD_MAX;
        char *grown;
        ssize_t n;

        if (c->in_length >= max)
                return;
        grown = realloc(c->in, (max > HTTP_HEAD_MAX ? max : HTTP_HEAD_MAX) + 1);
        if (!grown)
                return http_client_free(c);
        c->in = grown;
        n = recv(c->fd, c->in + c->in_length, max - c->in_length, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0)
                return http_client_free(c);
        c->in_length += (size_t)n;
        c->in[c->in_length] = '\0';
        http_client_parse(c);
}

/* Bytes after the request are dropped. */
static void http_client_drain(HttpConnection *c) {
        char dropped[4096];
        const ssize_t n = recv(c->fd, dropped, sizeof(dropped), MSG_DONTWAIT);

        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                http_client_free(c);
}

static void http_client_on_event(void *data, uint32_t events) {
        HttpConnection *c = data;

        if ((events & EPOLLOUT) && !http_client_flush(c))
                return;
        if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
                return;
        if (c->state == HTTP_READING)
                http_client_read(c);
        else
                http_client_drain(c);
}

/* --- the server --- */

/* Whoever has no token must not keep others out: the oldest connection whose head has not been
 * judged makes room. */
static void http_make_room(const HttpServer *server) {
        HttpConnection *oldest = NULL;

        if (server->connections_count < HTTP_CONNECTIONS_MAX)
                return;
        for (HttpConnection *c = server->connections; c; c = c->next)
                if (c->head_length == 0)
                        oldest = c;
        if (oldest)
                http_client_free(oldest);
}

static void http_on_client(void *data, uint32_t events) {
        HttpServer *server = data;
        const int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        HttpConnection *c = NULL;
        Error ignored;

        (void)events;
        http_make_room(server);
        if (fd >= 0 && server->connections_count < HTTP_CONNECTIONS_MAX)
                c = calloc(1, sizeof(*c));
        if (!c) {
                fd_close(fd);
                return;
        }
        *c = (HttpConnection){ .server = server, .fd = fd };
        list_push(&server->connections, c);
        server->connections_count++;
        if (loop_watch(server->loop, fd, EPOLLIN, http_client_on_event, c, &c->watch, &ignored) <
                    0 ||
            loop_timer_new(server->loop, http_client_on_time, c, &c->timer, &ignored) < 0)
                return http_client_free(c);
        loop_timer_set(c->timer, time_now_usec() + HTTP_HEAD_TIME);
}

static int http_make_token(HttpServer *server, const char *token, Error *reterr) {
        const size_t length = token ? strlen(token) : 0;
        uint64_t random[4];

        if (token &&
            (length < HTTP_TOKEN_MIN || length > HTTP_TOKEN_MAX ||
             strspn(token,
                    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=") !=
                     length))
                return error_set(reterr, ERROR_USAGE, 0,
                                 "the token must have %d to %d characters, which are letters, "
                                 "digits and -._~+/=",
                                 HTTP_TOKEN_MIN, HTTP_TOKEN_MAX);
        if (token) {
                (void)strcpy(server->token, token);
                return 0;
        }
        if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
                return error_set(reterr, ERROR_SETUP, errno, "cannot get random bytes");
        (void)snprintf(server->token, sizeof(server->token),
                       "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64, random[0],
                       random[1], random[2], random[3]);
        return 0;
}

static int http_listen(HttpServer *server, uint16_t port, Error *reterr) {
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_port = htons(port),
                                       .sin_addr = { htonl(INADDR_LOOPBACK) } };
        socklen_t length = sizeof(address);
        const int on = 1;

        server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (server->fd < 0 ||
            setsockopt(server->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
            bind(server->fd, (struct sockaddr *)&address, length) < 0 ||
            listen(server->fd, 64) < 0 ||
            getsockname(server->fd, (struct sockaddr *)&address, &length) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot listen on 127.0.0.1:%u", port);
        server->port = ntohs(address.sin_port);
        return 0;
}

int http_open(const McpSettings *settings, uint16_t port, const char *token, HttpServer **ret,
              Error *reterr) {
        HttpServer *server = calloc(1, sizeof(*server));
        int r;

        if (!server)
                return error_oom(reterr);
        *server = (HttpServer){ .settings = *settings, .fd = FD_NONE };
        r = http_make_token(server, token, reterr);
        if (r == 0)
                r = http_listen(server, port, reterr);
        if (r == 0)
                r = loop_new(&server->loop, reterr);
        if (r == 0)
                r = loop_watch(server->loop, server->fd, EPOLLIN, http_on_client, server,
                               &server->watch, reterr);
        if (r < 0) {
                (void)http_free(server);
                return r;
        }
        *ret = server;
        return 0;
}

uint16_t http_port(const HttpServer *server) {
        return server->port;
}

const char *http_token(const HttpServer *server) {
        return server->token;
}

static void http_on_signal(void *data, uint32_t events) {
        (void)events;
        loop_stop(((HttpServer *)data)->loop);
}

int http_run(HttpServer *server, Error *reterr) {
        _cleanup_close_ int signal_fd = FD_NONE;
        LoopWatch *watch;
        int r;

        signal_fd = client_loop_signals(reterr);
        if (signal_fd < 0)
                return signal_fd;
        r = loop_watch(server->loop, signal_fd, EPOLLIN, http_on_signal, server, &watch, reterr);
        if (r < 0)
                return r;
        (void)loop_run(server->loop);
        (void)loop_unwatch(watch);
        return 0;
}

HttpServer *http_free(HttpServer *server) {
        if (!server)
                return NULL;
        while (server->sessions)
                http_session_free(server->sessions);
        while (server->connections)
                http_client_free(server->connections);
        server->watch = loop_unwatch(server->watch);
        server->fd = fd_close(server->fd);
        server->loop = loop_free(server->loop);
        explicit_bzero(server->token, sizeof(server->token));
        free(server);
        return NULL;
}
