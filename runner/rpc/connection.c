/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/connection.h"

#include <errno.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/time.h"

enum {
        LARGE = 64 << 10, /* bytes of a message; after a larger one, memory is given back */
        LINES_MAX = 16,   /* lines of one connection per turn, so that others get their turns */
};

/* --- memory --- */

static bool is_idle(const RpcConnection *c) {
        return !c->input.framing.data && rpc_queue_empty(&c->queue);
}

/* A line of 1 MiB may become a tree of 40 MiB in small pieces. glibc keeps freed pieces for later
 * ones of their size (mallopt(3), M_MXFAST). This makes an idle session small again. */
static void give_memory_back(void) {
#ifdef __GLIBC__
        (void)malloc_trim(0);
#endif
}

/* --- reading --- */

/* The server stops reading from a client that does not read its replies. The limit is higher while
 * the server awaits replies: the client may be writing one, and read nothing until it has finished.
 * Replies to the client's own requests in the meantime fit in RPC_QUEUE_ASKED. */
static bool connection_is_full(const RpcConnection *c) {
        return c->held || c->queue.bytes >= (c->requests ? RPC_QUEUE_ASKED : RPC_QUEUE_SOFT);
}

static bool wants_input(const RpcConnection *c) {
        return !c->eof && !c->broken && !c->more && !connection_is_full(c);
}

static void read_input(RpcConnection *c) {
        ssize_t n = rpc_input_read(&c->input, false);

        c->large |= c->input.framing.size > LARGE;
        c->more = n >= 0;
        c->eof = n == 0;
        c->broken = n < 0 && n != -EAGAIN;
}

/* A pipe without writers would wake the loop for ever. */
static void close_input(RpcConnection *c) {
        if (c->in_fd == c->out_fd)
                return;
        c->in_watch = loop_unwatch(c->in_watch);
        c->in_fd = fd_close(c->in_fd);
}

static bool next_line(RpcConnection *c, FramingLine *line, RpcFds *fds) {
        c->more = rpc_input_next(&c->input, line, fds) ||
                  (c->eof && rpc_input_rest(&c->input, line, fds));
        return c->more;
}

/* A proof is an empty line with one descriptor. */
static bool is_proof(const RpcConnection *c, const FramingLine *line, const RpcFds *fds) {
        return line->bytes && line->length == 0 && fds->count == 1 && !fds->refused &&
               peer_has_proved(fds->fds[0], &c->server->own);
}

/* Bytes that cannot be sent at once are dropped, because no memory is spent on a stranger. */
static void refuse_stranger(RpcConnection *c) {
        Error error;

        (void)peer_refuse(&error);
        rpc_send_error(c, NULL, 0, &error, NULL);
        c->broken = true;
}

static void take_proof(RpcConnection *c, const FramingLine *line, RpcFds *fds) {
        if (is_proof(c, line, fds))
                c->prove_until = 0;
        else
                refuse_stranger(c);
        rpc_fds_close(fds);
}

/* Executes the lines of one turn. A line that takes long is the last. */
static void run_lines(RpcConnection *c) {
        const uint64_t end = time_now_usec() + RPC_TURN_TIME;

        for (int i = 0; i < LINES_MAX && c->more && !c->broken && !connection_is_full(c); i++) {
                FramingLine line;
                RpcFds fds;

                if (!next_line(c, &line, &fds))
                        break;
                if (c->prove_until)
                        take_proof(c, &line, &fds);
                else
                        rpc_call_line(c, &line, &fds);
                if (time_now_usec() >= end)
                        break;
        }
}

/* --- sending --- */

static void flush_output(RpcConnection *c) {
        if (rpc_queue_flush(&c->queue) < 0)
                c->broken = true;
        if (!c->room_wanted || c->broken || c->queue.bytes >= RPC_QUEUE_SOFT / 2)
                return;
        c->room_wanted = false;
        if (c->server->on_room)
                c->server->on_room(c, c->server->data);
}

int rpc_connection_send(RpcConnection *c, const char *bytes, size_t length, const int *fds,
                        size_t count) {
        int r;

        if (c->broken)
                return 0;
        c->large |= length > LARGE;
        r = rpc_queue_send(&c->queue, bytes, length, fds, count);
        if (r < 0 && count > 0)
                return r;
        c->large |= c->queue.bytes > LARGE;
        /* Replies fit below this limit; only an excess of notifications reaches it. */
        c->broken = r < 0 || c->queue.bytes > RPC_QUEUE_END;
        return 0;
}

void rpc_hold(RpcConnection *connection, bool hold) {
        if (connection->held == hold)
                return;
        connection->held = hold;
        rpc_connection_settle(connection);
}

bool rpc_has_room(RpcConnection *connection) {
        if (connection->queue.bytes < RPC_QUEUE_SOFT)
                return true;
        connection->room_wanted = true;
        return false;
}

int rpc_notify(RpcConnection *connection, const char *method, const JsonWriter *params) {
        if (connection->broken || connection_is_full(connection)) {
                connection->room_wanted = true;
                return -EAGAIN;
        }
        return rpc_tell(connection, method, params);
}

int rpc_connection_write(RpcConnection *connection, const char *id, const char *method,
                         const JsonWriter *params) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_string(&w, "jsonrpc", "2.0");
        if (id)
                json_write_string(&w, "id", id);
        json_write_string(&w, "method", method);
        json_write_value(&w, "params", params);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return -ENOMEM;
        (void)rpc_connection_send(connection, w.data, w.length, NULL, 0);
        return 0;
}

int rpc_tell(RpcConnection *connection, const char *method, const JsonWriter *params) {
        int r = rpc_connection_write(connection, NULL, method, params);

        if (r == 0)
                rpc_connection_settle(connection);
        return r;
}

/* --- watched events --- */

static bool is_over(const RpcConnection *c) {
        return c->broken || (c->eof && !c->more && !c->calls && rpc_queue_empty(&c->queue));
}

void rpc_connection_settle(RpcConnection *c) {
        uint32_t in = wants_input(c) ? EPOLLIN : 0;
        uint32_t out = rpc_queue_empty(&c->queue) ? 0 : EPOLLOUT;

        if (c->working)
                return;
        if (c->out_watch)
                loop_watch_set(c->out_watch, out);
        if (c->in_watch)
                loop_watch_set(c->in_watch, in | (c->out_watch ? 0 : out));
        if (is_over(c) || (c->more && !connection_is_full(c)) || (in && !c->in_watch) ||
            (c->large && is_idle(c)))
                loop_timer_set(c->again, 1);
}

/* Takes one turn. Remaining lines are left to the next. */
static void connection_work(RpcConnection *c, bool readable) {
        c->working = true;
        if (readable && wants_input(c))
                read_input(c);
        run_lines(c);
        c->working = false;
        if (c->eof)
                close_input(c);
        if (c->eof && !c->more)
                rpc_requests_end(c);
        if (is_over(c))
                return rpc_connection_end(c);
        if (c->large && is_idle(c)) {
                give_memory_back();
                c->large = false;
        }
        rpc_connection_settle(c);
}

/* --- events --- */

/* epoll(7) always reports a hang-up, which would wake the loop for ever while the client waits for
 * its turn. So a separate in_fd is no longer watched: reading from it does not block any more. A
 * connection over a socket ends once everything is read, or at once if replies are queued. */
static void hung_up(RpcConnection *c) {
        c->held = false;
        if (c->in_fd != c->out_fd)
                c->in_watch = loop_unwatch(c->in_watch);
        else if (c->eof)
                c->broken = true;
        else
                flush_output(c);
}

static void on_input(void *data, uint32_t events) {
        RpcConnection *c = data;

        if (events & EPOLLOUT)
                flush_output(c);
        if (events & (EPOLLHUP | EPOLLERR))
                hung_up(c);
        connection_work(c, events & (EPOLLIN | EPOLLHUP | EPOLLERR));
}

static void on_output(void *data, uint32_t events) {
        RpcConnection *c = data;

        if (events & EPOLLOUT)
                flush_output(c);
        else
                c->broken = true;
        connection_work(c, false);
}

static void on_again(void *data) {
        RpcConnection *c = data;

        if (c->prove_until && time_now_usec() >= c->prove_until)
                refuse_stranger(c);
        connection_work(c, !c->in_watch);
}

void rpc_connection_want_proof(RpcConnection *c) {
        c->prove_until = time_now_usec() + RPC_PROOF_TIME;
        loop_timer_set(c->again, c->prove_until);
}

/* --- begin and end --- */

static bool is_socket(int fd, int *ret_domain) {
        socklen_t length = sizeof(*ret_domain);

        *ret_domain = 0;
        return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, ret_domain, &length) == 0;
}

/* epoll(7) refuses a regular file (EPERM), which is always ready. */
static int connection_watch(RpcConnection *c, int fd, uint32_t events, LoopWatchFn fn,
                            LoopWatch **ret, Error *reterr) {
        int r = loop_watch(c->server->loop, fd, events, fn, c, ret, reterr);

        return r == -EPERM ? 0 : r;
}

static int connection_begin(RpcConnection *c, int in_fd, int out_fd, Error *reterr) {
        int domain, r;

        c->input.socket = is_socket(in_fd, &domain);
        c->queue.socket = is_socket(out_fd, &domain);
        c->passes_fds = domain == AF_UNIX;
        c->input.fd = in_fd;
        c->queue.fd = out_fd;
        r = loop_timer_new(c->server->loop, on_again, c, &c->again, reterr);
        if (r == 0)
                r = connection_watch(c, in_fd, EPOLLIN, on_input, &c->in_watch, reterr);
        if (r == 0 && in_fd != out_fd)
                r = connection_watch(c, out_fd, 0, on_output, &c->out_watch, reterr);
        if (r < 0)
                return r;
        c->in_fd = in_fd;
        c->out_fd = out_fd;
        rpc_connection_settle(c);
        return 0;
}

static void connection_free(RpcConnection *c) {
        rpc_input_clear(&c->input);
        rpc_queue_clear(&c->queue);
        (void)loop_unwatch(c->in_watch);
        (void)loop_unwatch(c->out_watch);
        (void)loop_timer_free(c->again);
        if (c->in_fd != c->out_fd)
                (void)fd_close(c->in_fd);
        (void)fd_close(c->out_fd);
        free(c);
}

int rpc_connection_new(RpcServer *server, int in_fd, int out_fd, RpcConnection **ret,
                       Error *reterr) {
        RpcConnection *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return error_oom(reterr);
        c->server = server;
        c->in_fd = c->out_fd = FD_NONE;
        c->input.framing.max = RPC_LINE_MAX;
        r = connection_begin(c, in_fd, out_fd, reterr);
        if (r < 0) {
                connection_free(c);
                return r;
        }
        c->next = server->connections;
        if (c->next)
                c->next->previous = c;
        server->connections = c;
        server->connections_count++;
        *ret = c;
        return 0;
}

static void unlink_from_server(RpcConnection *c) {
        if (c->previous)
                c->previous->next = c->next;
        else
                c->server->connections = c->next;
        if (c->next)
                c->next->previous = c->previous;
        c->server->connections_count--;
}

void rpc_connection_end(RpcConnection *c) {
        RpcServer *server = c->server;
        bool large = c->large;

        c->broken = c->working = true;
        unlink_from_server(c);
        while (c->calls)
                rpc_call_end(c->calls);
        rpc_requests_end(c);
        if (server->on_end)
                server->on_end(c, server->data);
        connection_free(c);
        if (large)
                give_memory_back();
}
