/* SPDX-License-Identifier: Apache-2.0 */
#include "inside/bridge.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/list.h"
#include "inside/tools.h"
#include "policy/plan.h"
#include "rpc/framing.h"
#include "rpc/peek.h"
#include "rpc/queue.h"

enum {
        ACCEPT_PAUSE =
                100000,   /* usec to wait before accepting again, if this process is out of fds. */
        ACCEPT_MAX = 16,  /* Connections accepted in one turn of the loop. */
        LINES_MAX = 16,   /* Lines of one connection in one turn of the loop. */
        SMALL = 64 << 10, /* Bytes of an unfinished line that any connection may have. */
        SLICE = 10000,    /* usec of one turn of the loop, all connections together. */
};

/* A request without a reply yet. */
typedef struct Asked {
        struct Asked *previous, *next;
        struct Connection *connection;
        uint64_t id;
        ToolCall *call;
} Asked;

/* A connection is freed only when it handles its own events; a broken one waits for its next
 * event. */
typedef struct Connection {
        struct Connection *next;
        Bridge *bridge;
        int fd;
        LoopWatch *watch;
        LoopTimer *again; /* Continues work that no event announces. */
        Framing in;
        RpcQueue out;
        Asked *asked;
        bool more, eof, broken;
} Connection;

struct Bridge {
        Loop *loop;
        Tools *tools;
        int fd;
        LoopWatch *watch;
        LoopTimer *accept_again;
        LoopTimer *next_slice; /* Fires in the next turn of the loop. */
        uint64_t slice_began;  /* usec; 0 until the bridge has worked in this turn. */
        Connection *connections;
        unsigned count;
        BridgeLinkFn make_link; /* NULL if code inside makes no links */
        void *make_link_data;
};

/* --- answers --- */

static void bridge_settle(Connection *c);

/* Whether the output limit of all connections together leaves room. */
static bool bridge_has_room(const Bridge *bridge, size_t more) {
        for (const Connection *c = bridge->connections; c; c = c->next)
                more += c->out.bytes;
        return more <= BRIDGE_OUTPUT_MAX;
}

static void bridge_send_line(Connection *c, JsonWriter *w) {
        if (json_write_finish(w) < 0 || !bridge_has_room(c->bridge, w->length))
                c->broken = true;
        if (!c->broken)
                c->broken = rpc_queue_send(&c->out, w->data, w->length, NULL, 0) < 0;
        bridge_settle(c);
}

/* An id of 0 is written as null. */
static void bridge_write_id(JsonWriter *w, uint64_t id) {
        json_write_object(w, NULL);
        if (id)
                json_write_uint(w, "id", id);
        else
                json_write_null(w, "id");
}

static void write_failure(JsonWriter *w, uint64_t id, const ToolFailure *failure) {
        bridge_write_id(w, id);
        json_write_object(w, "error");
        json_write_string(w, "type", tool_failure_name(failure->kind));
        json_write_string(w, "message", failure->message);
        json_write_end(w);
        json_write_end(w);
}

static void send_failure(Connection *c, uint64_t id, const ToolFailure *failure) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        write_failure(&w, id, failure);
        bridge_send_line(c, &w);
}

static void bridge_refuse(Connection *c, uint64_t id, ToolFailureKind kind, const char *message) {
        ToolFailure failure = { .kind = kind };

        (void)snprintf(failure.message, sizeof(failure.message), "%s", message);
        send_failure(c, id, &failure);
}

static void bridge_forget(Asked *asked) {
        if (asked->previous)
                asked->previous->next = asked->next;
        else
                asked->connection->asked = asked->next;
        if (asked->next)
                asked->next->previous = asked->previous;
        free(asked);
}

static void on_done(void *data, const JsonValue *value, const ToolFailure *failure) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        Asked *asked = data;
        Connection *c = asked->connection;

        if (failure) {
                write_failure(&w, asked->id, failure);
        } else {
                bridge_write_id(&w, asked->id);
                json_copy(&w, "value", value);
                json_write_end(&w);
        }
        bridge_forget(asked);
        bridge_send_line(c, &w);
}

/* --- requests --- */

static void call_tool(Connection *c, uint64_t id, Grant *grant, const JsonValue *root,
                      const char *name) {
        Asked *asked = malloc(sizeof(*asked));
        const JsonValue *payload = json_member(root, "payload");
        ToolFailure failure;

        if (!asked)
                return bridge_refuse(c, id, TOOL_INTERNAL, "out of memory");
        *asked = (Asked){ .next = c->asked, .connection = c, .id = id };
        if (payload && json_type(payload) == JSON_NULL)
                payload = NULL;
        if (tools_call(c->bridge->tools, grant, name, payload, on_done, asked, &asked->call,
                       &failure) < 0) {
                free(asked);
                return send_failure(c, id, &failure);
        }
        if (asked->next)
                asked->next->previous = asked;
        c->asked = asked;
}

static void list_tools(Connection *c, uint64_t id, const Grant *grant) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        bridge_write_id(&w, id);
        tools_write(c->bridge->tools, grant, "tools", &w);
        json_write_end(&w);
        bridge_send_line(c, &w);
}

static void bridge_make_link(Connection *c, uint64_t id, const JsonValue *root, const char *path) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        const Bridge *bridge = c->bridge;
        uint64_t for_ms = 0;
        Error error;

        if (!bridge->make_link)
                return bridge_refuse(c, id, TOOL_PERMISSION,
                                     "the policy does not let code inside make links "
                                     "(bridge.links)");
        if (json_member(root, "for_ms") &&
            json_uint(json_member(root, "for_ms"), JSON_INTEGER_MAX, &for_ms) < 0)
                return bridge_refuse(c, id, TOOL_VALIDATION,
                                     "for_ms must be a number of milliseconds");
        bridge_write_id(&w, id);
        json_write_object(&w, "value");
        if (bridge->make_link(bridge->make_link_data, path, for_ms, &w, &error) < 0)
                return bridge_refuse(c, id, TOOL_VALIDATION, error.text);
        json_write_end(&w);
        json_write_end(&w);
        bridge_send_line(c, &w);
}

static void bridge_obey(Connection *c, const JsonValue *root) {
        const JsonValue *number = json_member(root, "id"), *list = json_member(root, "list");
        const char *token = json_member_string(root, "token"),
                   *name = json_member_string(root, "call"),
                   *link = json_member_string(root, "link");
        Grant *grant;
        uint64_t id = 0;
        bool lists = false;

        (void)json_bool(list, &lists);
        if (json_uint(number, JSON_INTEGER_MAX, &id) < 0 || id == 0)
                return bridge_refuse(
                        c, 0, TOOL_VALIDATION,
                        "the request's id is missing or invalid: send an integer from 1 on");
        if ((name != NULL) + (link != NULL) + lists != 1)
                return bridge_refuse(c, id, TOOL_VALIDATION,
                                     "a request must have one of call, the name of a tool; list, "
                                     "which must be true; and link, a path");
        grant = token ? tools_find_grant(c->bridge->tools, token) : NULL;
        if (!grant)
                return bridge_refuse(c, id, TOOL_PERMISSION,
                                     token ? "the token is unknown, or its exec has ended"
                                           : "the request's token is missing: send the value of "
                                             "HOLT_BRIDGE_TOKEN");
        if (name)
                call_tool(c, id, grant, root, name);
        else if (link)
                bridge_make_link(c, id, root, link);
        else
                list_tools(c, id, grant);
}

/* Returns the id of a line that cannot be parsed, or 0 if it has none. */
static uint64_t peek_id(const char *head) {
        _cleanup_(json_freep) JsonDocument *document = rpc_peek(head);
        const JsonValue *value = document ? json_member(json_root(document), "id") : NULL;
        uint64_t id = 0;

        return json_uint(value, JSON_INTEGER_MAX, &id) == 0 ? id : 0;
}

static void bridge_take_line(Connection *c, const FramingLine *line) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        char head[64];
        Error error;

        if (!line->bytes)
                return bridge_refuse(c, peek_id(line->head), TOOL_VALIDATION,
                                     "the line is longer than 1 MiB");
        if (json_parse(line->bytes, line->length, "request", &document, &error) == 0)
                return bridge_obey(c, json_root(document));
        (void)snprintf(head, sizeof(head), "%.*s",
                       (int)(line->length < sizeof(head) ? line->length : sizeof(head) - 1),
                       line->bytes);
        bridge_refuse(c, peek_id(head), TOOL_VALIDATION, error.text);
}

/* --- reading --- */

static bool bridge_is_full(const Connection *c) {
        return c->out.bytes >= BRIDGE_OUTPUT_SOFT;
}

static bool bridge_wants_input(const Connection *c) {
        return !c->eof && !c->broken && !c->more && !bridge_is_full(c);
}

/* A long line may grow while all long lines together stay within their limit. */
static bool may_grow(const Connection *c) {
        size_t sum = 0;

        if (c->in.size < SMALL)
                return true;
        for (const Connection *other = c->bridge->connections; other; other = other->next)
                sum += other->in.size;
        return sum <= BRIDGE_INPUT_MAX;
}

static void bridge_read_input(Connection *c) {
        size_t size;
        char *room;
        ssize_t n;

        if (!may_grow(c))
                bridge_refuse(c, 0, TOOL_INTERNAL,
                              "too many long requests arrive at the same time");
        if (!may_grow(c) || framing_room(&c->in, &room, &size) < 0) {
                c->broken = true;
                return;
        }
        n = read(c->fd, room, size);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        c->broken |= n < 0;
        c->eof = n == 0;
        if (n > 0) {
                framing_add(&c->in, (size_t)n);
                c->more = true;
        }
}

static void bridge_run_lines(Connection *c) {
        for (int i = 0; i < LINES_MAX && c->more && !c->broken && !bridge_is_full(c); i++) {
                FramingLine line;

                c->more = framing_next(&c->in, &line);
                if (c->more)
                        bridge_take_line(c, &line);
        }
}

/* --- connections --- */

static bool bridge_is_over(const Connection *c) {
        return c->broken || (c->eof && !c->more && !c->asked && rpc_queue_empty(&c->out));
}

/* Sets the events and timers that the connection needs now. */
static void bridge_settle(Connection *c) {
        loop_watch_set(c->watch, (bridge_wants_input(c) ? EPOLLIN : 0) |
                                         (rpc_queue_empty(&c->out) ? 0 : EPOLLOUT));
        if (bridge_is_over(c))
                loop_timer_set(c->again, 1);
        else if (c->more && !bridge_is_full(c))
                loop_timer_set(c->again, time_now_usec());
}

/* Returns false once the bridge has used up its slice of this turn; the rest is for the session's
 * clients. */
static bool has_time(Bridge *bridge) {
        const uint64_t now = time_now_usec();

        if (bridge->slice_began == 0) {
                bridge->slice_began = now;
                loop_timer_set(bridge->next_slice, 1);
        }
        return now - bridge->slice_began < SLICE;
}

static void on_next_slice(void *data) {
        Bridge *bridge = data;

        bridge->slice_began = 0;
}

static void bridge_connection_free(Connection *c) {
        if (list_remove(&c->bridge->connections, c))
                c->bridge->count--;
        c->broken = true;
        while (c->asked) {
                ToolCall *call = c->asked->call;

                bridge_forget(c->asked);
                (void)tool_call_cancel(call);
        }
        (void)loop_unwatch(c->watch);
        (void)loop_timer_free(c->again);
        framing_clear(&c->in);
        rpc_queue_clear(&c->out);
        (void)fd_close(c->fd);
        free(c);
}

static void bridge_work(Connection *c, bool readable) {
        /* The connection comes first in the next turn, before those that were served in this
         * one. */
        if (!bridge_is_over(c) && !has_time(c->bridge))
                return loop_timer_set(c->again, 1);
        if (readable && bridge_wants_input(c))
                bridge_read_input(c);
        bridge_run_lines(c);
        if (bridge_is_over(c))
                bridge_connection_free(c);
        else
                bridge_settle(c);
}

static void bridge_on_event(void *data, uint32_t events) {
        Connection *c = data;

        if (events & EPOLLOUT && rpc_queue_flush(&c->out) < 0)
                c->broken = true;
        /* The peer has closed, so nobody can read a reply. */
        if (events & (EPOLLHUP | EPOLLERR))
                c->broken = true;
        bridge_work(c, events & EPOLLIN);
}

static void bridge_on_again(void *data) {
        bridge_work(data, false);
}

static int connection_new(Bridge *bridge, int fd, Error *reterr) {
        Connection *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return error_oom(reterr);
        *c = (Connection){ .bridge = bridge,
                           .fd = FD_NONE,
                           .in = { .max = BRIDGE_LINE_MAX },
                           .out = { .fd = fd, .socket = true } };
        r = loop_timer_new(bridge->loop, bridge_on_again, c, &c->again, reterr);
        if (r == 0)
                r = loop_watch(bridge->loop, fd, EPOLLIN, bridge_on_event, c, &c->watch, reterr);
        if (r < 0) {
                (void)loop_timer_free(c->again);
                free(c);
                return r;
        }
        c->fd = fd;
        list_push(&bridge->connections, c);
        bridge->count++;
        return 0;
}

/* --- the socket --- */

/* Sends the message only if that needs no waiting. */
static void bridge_turn_away(int fd, const char *message) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        ToolFailure failure = { .kind = TOOL_INTERNAL };

        (void)snprintf(failure.message, sizeof(failure.message), "%s", message);
        write_failure(&w, 0, &failure);
        if (json_write_finish(&w) == 0)
                (void)send(fd, w.data, w.length, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)fd_close(fd);
}

static void bridge_welcome(Bridge *bridge, int fd) {
        Error error;

        if (bridge->count >= BRIDGE_CONNECTIONS_MAX)
                bridge_turn_away(fd, "too many connections to the bridge are open: close some, or "
                                     "use one for several requests");
        else if (connection_new(bridge, fd, &error) < 0)
                bridge_turn_away(fd, error.text);
}

static void bridge_accept_again(void *data) {
        Bridge *bridge = data;

        loop_watch_set(bridge->watch, EPOLLIN);
}

static void bridge_on_listen(void *data, uint32_t events) {
        Bridge *bridge = data;

        (void)events;
        for (int i = 0; i < ACCEPT_MAX; i++) {
                int fd = accept4(bridge->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (fd >= 0) {
                        bridge_welcome(bridge, fd);
                } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
                           errno == ENOBUFS) {
                        loop_watch_set(bridge->watch, 0);
                        loop_timer_set(bridge->accept_again, time_now_usec() + ACCEPT_PAUSE);
                        return;
                } else if (errno != EINTR && errno != ECONNABORTED) {
                        return;
                }
        }
}

/* The path is safe: nothing runs inside yet that could change it. */
static int listen_inside(int root_fd, int *ret, Error *reterr) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot make the bridge's socket");
        (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d" BRIDGE_SOCKET,
                       root_fd);
        if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 256) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot listen at " BRIDGE_SOCKET);
        *ret = TAKE_FD(fd);
        return 0;
}

int bridge_new(Loop *loop, Tools *tools, int root_fd, Bridge **ret, Error *reterr) {
        Bridge *bridge = calloc(1, sizeof(*bridge));
        int r;

        if (!bridge)
                return error_oom(reterr);
        *bridge = (Bridge){ .loop = loop, .tools = tools, .fd = FD_NONE };
        r = listen_inside(root_fd, &bridge->fd, reterr);
        if (r == 0)
                r = loop_timer_new(loop, bridge_accept_again, bridge, &bridge->accept_again,
                                   reterr);
        if (r == 0)
                r = loop_timer_new(loop, on_next_slice, bridge, &bridge->next_slice, reterr);
        if (r == 0)
                r = loop_watch(loop, bridge->fd, EPOLLIN, bridge_on_listen, bridge, &bridge->watch,
                               reterr);
        if (r < 0)
                (void)bridge_free(bridge);
        else
                *ret = bridge;
        return r;
}

void bridge_allow_links(Bridge *bridge, BridgeLinkFn fn, void *data) {
        bridge->make_link = fn;
        bridge->make_link_data = data;
}

Bridge *bridge_free(Bridge *bridge) {
        if (!bridge)
                return NULL;
        while (bridge->connections)
                bridge_connection_free(bridge->connections);
        (void)loop_unwatch(bridge->watch);
        (void)loop_timer_free(bridge->accept_again);
        (void)loop_timer_free(bridge->next_slice);
        (void)fd_close(bridge->fd);
        free(bridge);
        return NULL;
}

/* --- the environment --- */

static char **find_variable(const StrList *env, const char *name) {
        const size_t length = strlen(name);

        for (size_t i = 0; i < env->count; i++)
                if (strncmp(env->items[i], name, length) == 0 && env->items[i][length] == '=')
                        return &env->items[i];
        return NULL;
}

static int bridge_set_variable(StrList *env, const char *name, const char *value) {
        char **old = find_variable(env, name), *item = str_format("%s=%s", name, value);

        if (!old || !item)
                return strlist_take(env, item);
        free(*old);
        *old = item;
        return 0;
}

/* Adds the path `more` to a variable that lists paths. */
static int add_to_path(StrList *env, const char *name, const char *more, bool in_front) {
        char **old = find_variable(env, name);
        const char *value = old ? *old + strlen(name) + 1 : "";
        _cleanup_free_ char *joined = in_front ? str_format("%s:%s", more, value)
                                               : str_format("%s:%s", value, more);

        if (!joined)
                return -ENOMEM;
        return bridge_set_variable(env, name, value[0] ? joined : more);
}

/* Holt's own modules come after the policy's helpers, which may replace one, and before all others.
 */
static int bridge_add_modules(StrList *env) {
        static const char helpers[] = PLAN_HELPERS, own[] = BRIDGE_DIRECTORY "/python";
        char **old = find_variable(env, "PYTHONPATH");
        const char *value = old ? *old + strlen("PYTHONPATH=") : "";
        const char *rest = str_starts(value, helpers) ? value + strlen(helpers) : NULL;
        _cleanup_free_ char *joined = NULL;

        if (!rest || (*rest && *rest != ':'))
                return add_to_path(env, "PYTHONPATH", own, true);
        joined = str_format("%s:%s%s", helpers, own, rest);
        return joined ? bridge_set_variable(env, "PYTHONPATH", joined) : -ENOMEM;
}

int bridge_fill_env(const char *token, StrList *env) {
        int r = bridge_set_variable(env, "HOLT_BRIDGE", BRIDGE_SOCKET);

        if (r == 0 && token)
                r = bridge_set_variable(env, "HOLT_BRIDGE_TOKEN", token);
        if (r == 0)
                r = bridge_add_modules(env);
        if (r == 0 && find_variable(env, "PATH"))
                r = add_to_path(env, "PATH", BRIDGE_DIRECTORY "/bin", false);
        return r;
}
