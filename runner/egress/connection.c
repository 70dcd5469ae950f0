/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation. The local address of an accepted socket is the one to which the program
 * connected. That address stands for a name, or lies in a block that a rule names. holt-egress
 * resolves a name and tries its addresses in turn, a new one every quarter of a second (RFC 8305).
 * It uses the first that answers.
 *
 * connection-move.c moves the bytes of a connection. A refused connection is reset. */
#include "egress/connection-internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/list.h"
#include "base/strings.h"
#include "egress/once.h"
#include "egress/ports.h"
#include "egress/questions.h"
#include "egress/proxy.h"
#include "egress/pump.h"
#include "egress/queue.h"
#include "egress/requests.h"
#include "wire/socket-address.h"
#include "egress/upstream.h"

enum {
        ATTEMPT_PAUSE = 250000,   /* usec between attempts. */
        CONNECT_TIME = 130000000, /* usec; the kernel gives up earlier. */
        ENTER_TIME =
                10000000, /* usec in which a listener must accept a connection that was let in. */
};

const char *connection_name(const Connection *c) {
        return c->number >= 0 ? names_text(c->egress->names, (unsigned)c->number) : NULL;
}

/* --- the end --- */

/* Ends the watch of a server's socket that is closed next. The maker has made the socket of a
 * published port, and may not have closed its own descriptor yet. */
static LoopWatch *server_unwatch(const Connection *c, LoopWatch *watch) {
        return c->published ? loop_unwatch(watch) : loop_forget(watch);
}

static void attempts_close(Connection *c) {
        for (size_t i = 0; i < ATTEMPTS_MAX; i++) {
                if (c->published)
                        request_forget(c->egress, &c->attempts[i]);
                c->attempts[i].watch = server_unwatch(c, c->attempts[i].watch);
                c->attempts[i].fd = fd_close(c->attempts[i].fd);
        }
        c->attempts_open = 0;
}

/* Tells the address that the program knows, and the host's port. */
static void connection_name_import(const Connection *c, EgressEvent *event) {
        const NetPort *port = ports_imported(c->egress, &c->asked, c->port);

        event->family = c->asked.family;
        memcpy(event->address, c->asked.bytes, sizeof(event->address));
        (void)snprintf(event->other, sizeof(event->other),
                       "port %u of its loopback (--import %u:%u)", port->host, port->host,
                       port->inside);
}

static EgressEvent connection_tell(const Connection *c, EgressEventType type, EgressReason reason,
                                   int errnum) {
        EgressEvent event = { .type = type,
                              .reason = reason,
                              .errnum = (uint32_t)errnum,
                              .port = c->port,
                              .sent = c->up.moved,
                              .received = c->down.moved,
                              .started_ms = c->started_ms,
                              .ended_ms = time_epoch_ms() };
        const NetAddress *address = c->tried > 0 && !c->tunnels ? &c->targets[c->tried - 1]
                                                                : &c->asked;
        const char *name = connection_name(c);

        if (c->published) {
                /* The host is the client, and the sandbox the server. */
                event.inside = c->port;
                event.sent = c->down.moved;
                event.received = c->up.moved;
        }
        /* A proxy outside does not tell the address of a name. */
        event.family = c->tunnels && name ? 0 : address->family;
        if (event.family)
                memcpy(event.address, address->bytes, sizeof(event.address));
        (void)snprintf(event.name, sizeof(event.name), "%s", name ? name : "");
        if (reason == EGRESS_NOT_LISTENING)
                connection_name_import(c, &event);
        egress_send(c->egress, &event);
        return event;
}

static void socket_reset(int fd) {
        const struct linger reset = { .l_onoff = 1 };

        if (fd >= 0)
                (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

static void connection_drop(Connection *c, bool reset) {
        Egress *egress = c->egress;
        struct Once *once = c->once;

        c->held = queue_release(egress, c->held, c->errnum);
        if (c->state == CONNECTION_RESOLVES && c->number >= 0)
                names_forget(egress->names, (unsigned)c->number, c);
        if (c->tunnels)
                upstream_forget(egress, c);
        c->call = upstream_end(c->call);
        c->proxy = proxy_free(c->proxy);
        attempts_close(c);
        c->client_watch = loop_forget(c->client_watch);
        c->server_watch = server_unwatch(c, c->server_watch);
        c->timer = loop_timer_free(c->timer);
        pump_clear(&c->up, egress->pipes);
        pump_clear(&c->down, egress->pipes);
        if (reset) {
                socket_reset(c->client_fd);
                socket_reset(c->server_fd);
        }
        fd_close(c->client_fd);
        fd_close(c->server_fd);
        (void)list_remove(&egress->connections, c);
        egress->connections_count--;
        question_leave(c);
        free(c);
        (void)once_release(egress, once);
        if (egress->leaves && egress->connections_count == 0)
                loop_stop(egress->loop);
}

/* Sends the reason to a client of the proxy inside that still waits for its reply. */
static void connection_reject(Connection *c, const EgressEvent *event) {
        Proxy *proxy = TAKE_PTR(c->proxy);

        if (proxy) {
                c->client_watch = loop_unwatch(c->client_watch);
                proxy_refuse(proxy, TAKE_FD(c->client_fd), event);
        }
        connection_drop(c, true);
}

void connection_refuse_host(Connection *c, EgressReason reason, const char *name,
                            const NetAddress *address, const char *other) {
        EgressEvent event = egress_denial(c->egress, reason, name, address, c->port, other);

        c->errnum = reason == EGRESS_NO_ADDRESS ? ENETUNREACH : ECONNREFUSED;
        if (c->held || c->proxy)
                event.errnum = (uint32_t)(c->held ? c->errnum : EACCES);
        else if (reason == EGRESS_NOBODY || reason == EGRESS_NO_TERMINAL ||
                 reason == EGRESS_NO_CLIENT)
                event.errnum = ECONNRESET; /* 0 would mean a refused lookup. */
        egress_send(c->egress, &event);
        connection_reject(c, &event);
}

void connection_refuse(Connection *c, EgressReason reason, const char *other) {
        connection_refuse_host(c, reason, connection_name(c), &c->asked, other);
}

void connection_end(Connection *c, int errnum) {
        if (c->egress->audits)
                (void)connection_tell(c, EGRESS_CLOSED, 0, errnum);
        connection_drop(c, errnum != 0);
}

/* A server may ignore "Connection: close", so that the client sends its next request on the same
 * connection. After a reply that is complete, it may send it again on another one, but only if this
 * one ends without a reset. */
void connection_end_request(Connection *c) {
        const bool replied = c->down.moved > 0 && c->down.held == 0 && !c->down.ahead;

        if (!replied)
                return connection_end(c, ECONNRESET);
        c->client_watch = loop_unwatch(c->client_watch);
        proxy_close(c->egress, TAKE_FD(c->client_fd));
        connection_end(c, 0);
}

void connection_unreached(Connection *c, EgressReason reason) {
        EgressEvent event;

        if (c->errnum == ECONNREFUSED && ports_imported(c->egress, &c->asked, c->port))
                reason = EGRESS_NOT_LISTENING;
        /* The client is a program of the host, which sees the reset. The sandbox itself has made no
         * connection, so no failure is reported. */
        if (c->published)
                return connection_drop(c, true);
        event = connection_tell(c, EGRESS_FAILED, reason, c->errnum);
        connection_reject(c, &event);
}

/* --- connecting --- */

/* Both sides are connected, so a one-time grant is used up. */
static void connection_use_and_begin(Connection *c) {
        once_use(c->egress, c->once);
        connection_begin_judged(c);
}

/* The server is connected. Lets in the program's own connection if it still waits. */
static void connection_open(Connection *c) {
        if (!c->held)
                return connection_use_and_begin(c);
        c->state = CONNECTION_ENTERS;
        c->entered = time_now_usec();
        loop_timer_set(c->timer, c->entered + ENTER_TIME);
        queue_let_in(c->egress, c->held);
}

static void connection_on_tunnel(void *data, EgressReason reason, int errnum) {
        Connection *c = data;

        c->call = NULL;
        if (errnum == 0)
                return connection_open(c);
        c->errnum = errnum;
        connection_unreached(c, reason);
}

/* The server, or the proxy outside, is connected. The watch stays: see attempt_on_event(). */
static void connection_connected(Connection *c, Attempt *attempt) {
        c->server_watch = TAKE_PTR(attempt->watch);
        c->server_events = ATTEMPT_EVENTS;
        c->server_fd = TAKE_FD(attempt->fd);
        c->tried = (size_t)(attempt - c->attempts) +
                   1; /* A later attempt may have been started, too. */
        attempts_close(c);
        loop_timer_set(c->timer, 0);
        if (!c->tunnels)
                return connection_open(c);
        c->server_watch = loop_unwatch(c->server_watch);
        c->state = CONNECTION_TUNNELS;
        c->call = upstream_call(c->egress, c->server_fd, connection_name(c), &c->asked, c->port,
                                connection_on_tunnel, c);
        if (!c->call) {
                c->errnum = ENOMEM;
                connection_unreached(c, EGRESS_UNREACHED);
        }
}

/* Ends the connection if no address is left. */
static void attempt_failed(Connection *c, Attempt *attempt, int errnum) {
        attempt->watch = server_unwatch(c, attempt->watch);
        attempt->fd = fd_close(attempt->fd);
        c->attempts_open--;
        c->errnum = errnum;
        connection_try(c);
}

/* Returns the error of a connect, or 0. The socket is only asked after an event that tells of an
 * error or the end. */
static int attempt_error(const Attempt *attempt, uint32_t events) {
        int errnum = 0;
        socklen_t length = sizeof(errnum);

        if (!(events & (EPOLLERR | EPOLLHUP)))
                return 0;
        if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &errnum, &length) < 0)
                return errno;
        return errnum;
}

/* Handles all events of the socket, also after it has become the connection's own. */
static void attempt_on_event(void *data, uint32_t events) {
        Attempt *attempt = data;
        Connection *c = attempt->connection;
        int errnum;

        if (c->server_watch)
                return connection_on_server(c, events);
        errnum = attempt_error(attempt, events);
        /* The server has accepted the connection and already reset it. The program must see the
         * same: first open, then reset. */
        if (errnum == ECONNRESET && c->held)
                c->broken = true;
        else if (errnum)
                return attempt_failed(c, attempt, errnum);
        connection_on_server(c, events);
        connection_connected(c, attempt);
}

/* Finds out when the host outside has vanished. A program's own keepalive only reaches the kernel
 * of its sandbox, and routers forget connections that are silent for some minutes. */
static void socket_keep_alive(int fd) {
        const int on = 1, idle = 60;

        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
}

/* Connects the attempt's socket. Returns 0 or a negative errno. */
static int attempt_connect(Attempt *attempt, const NetAddress *target, uint16_t port) {
        struct sockaddr_storage storage;
        const socklen_t length = socket_address_set(target, port, &storage);

        socket_set_stream(attempt->fd);
        if (net_address_is_loopback(target))
                socket_set_local(attempt->fd);
        if (connect(attempt->fd, (const struct sockaddr *)&storage, length) < 0 &&
            errno != EINPROGRESS)
                return -errno;
        return loop_watch(attempt->connection->egress->loop, attempt->fd, ATTEMPT_EVENTS,
                          attempt_on_event, attempt, &attempt->watch, NULL);
}

/* The maker has made a socket in the sandbox. */
static void attempt_on_socket(void *data, int fd, int errnum) {
        Attempt *attempt = data;
        Connection *c = attempt->connection;
        int r = -errnum;

        attempt->fd = fd;
        if (fd >= 0)
                r = attempt_connect(attempt, &c->targets[attempt - c->attempts], c->target_port);
        if (r < 0)
                attempt_failed(c, attempt, -r);
}

/* Starts to connect to one address. Returns 0 or a negative errno. */
static int attempt_start(Connection *c, Attempt *attempt, const NetAddress *target) {
        const MakerRequest inside = { .kind = MADE_SOCKET, .address = *target };

        if (c->published)
                return request_send(c->egress, &inside, attempt_on_socket, attempt);
        attempt->fd = socket(target->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (attempt->fd < 0)
                return -errno;
        socket_keep_alive(attempt->fd);
        return attempt_connect(attempt, target, c->target_port);
}

static bool connection_has_more(const Connection *c) {
        return c->tried < c->targets_count && c->tried < ATTEMPTS_MAX;
}

/* Tries the next address, or ends the connection if all have failed. For the last address, only the
 * kernel limits the time. */
void connection_try(Connection *c) {
        while (connection_has_more(c)) {
                Attempt *attempt = &c->attempts[c->tried];
                int r = attempt_start(c, attempt, &c->targets[c->tried++]);

                if (r == 0) {
                        c->attempts_open++;
                        loop_timer_set(c->timer,
                                       time_now_usec() + (connection_has_more(c) ? ATTEMPT_PAUSE
                                                                                 : CONNECT_TIME));
                        return;
                }
                c->errnum = -r;
                attempt->fd = fd_close(attempt->fd);
        }
        if (c->attempts_open == 0)
                return connection_unreached(c, c->tunnels ? EGRESS_NO_UPSTREAM : EGRESS_UNREACHED);
        loop_timer_set(c->timer, time_now_usec() + CONNECT_TIME);
}

static void connection_on_time(void *data) {
        Connection *c = data;

        if (c->state == CONNECTION_MOVES || c->state == CONNECTION_GREETS)
                return connection_move_on_time(c);
        if (c->state == CONNECTION_ENTERS)
                return connection_end(c, ECONNRESET);
        if (c->state == CONNECTION_CONNECTS && connection_has_more(c))
                return connection_try(c);
        c->errnum = ETIMEDOUT;
        connection_unreached(c, c->tunnels ? EGRESS_NO_UPSTREAM : EGRESS_UNREACHED);
}

/* --- accepting --- */

/* Takes over the client's socket. */
static int connection_join(Connection *c, int fd) {
        c->client_fd = fd;
        c->client_events = SIDE_EVENTS;
        return loop_watch(c->egress->loop, fd, SIDE_EVENTS, connection_on_client, c,
                          &c->client_watch, NULL);
}

static int connection_prepare(Connection *c, int fd) {
        int r = loop_timer_new(c->egress->loop, connection_on_time, c, &c->timer, NULL);

        for (size_t i = 0; i < ATTEMPTS_MAX; i++)
                c->attempts[i] = (Attempt){ .connection = c, .fd = FD_NONE };
        c->up.pipe[0] = c->up.pipe[1] = c->down.pipe[0] = c->down.pipe[1] = FD_NONE;
        return r == 0 && fd >= 0 ? connection_join(c, fd) : r;
}

/* If too many connections are open, refuses the one that has waited longest. A program that has
 * given up leaves its packet in the queue. */
static void connection_make_room(const Egress *egress) {
        Connection *oldest = NULL;

        if (egress->connections_count < CONNECTIONS_MAX)
                return;
        for (Connection *c = egress->connections; c; c = c->next)
                if (c->held && c->state <= CONNECTION_TUNNELS)
                        oldest = c;
        if (oldest)
                connection_refuse(oldest, EGRESS_BUSY, NULL);
}

/* Makes a connection for an accepted socket, or without one if fd is FD_NONE. Returns NULL if that
 * is not possible.
 */
static Connection *connection_take(Egress *egress, int fd) {
        Connection *c;

        connection_make_room(egress);
        c = egress->connections_count < CONNECTIONS_MAX && !egress->leaves ? calloc(1, sizeof(*c))
                                                                           : NULL;
        if (!c) {
                if (!egress->leaves)
                        egress_deny(egress, EGRESS_BUSY, NULL, NULL, 0, NULL);
                socket_reset(fd);
                fd_close(fd);
                return NULL;
        }
        *c = (Connection){
                .egress = egress, .client_fd = FD_NONE, .server_fd = FD_NONE, .number = -1
        };
        c->started_ms = time_epoch_ms();
        list_push(&egress->connections, c);
        egress->connections_count++;
        if (connection_prepare(c, fd) == 0)
                return c;
        connection_drop(c, true);
        return NULL;
}

/* A listener has accepted the connection that was let in. */
static void connection_enter(Connection *c, int fd) {
        c->held = NULL;
        if (connection_join(c, fd) < 0)
                return connection_end(c, ENOMEM);
        if (!c->broken)
                return connection_use_and_begin(c);
        once_use(c->egress, c->once);
        connection_end(c, ECONNRESET);
}

void connection_accept(Egress *egress, int fd, const Syn *syn) {
        Connection *c = queue_take(egress, syn);

        if (c)
                return connection_enter(c, fd);
        if (proxy_takes(egress, &syn->to, syn->to_port))
                return proxy_accept(egress, fd);
        c = connection_take(egress, fd);
        if (!c)
                return;
        c->asked = syn->to;
        c->port = c->target_port = syn->to_port;
        connection_judge(c);
}

void connection_hold(Egress *egress, Held *held, const Syn *syn, Connection **ret) {
        Connection *c = *ret = connection_take(egress, FD_NONE);

        if (!c)
                return (void)queue_release(egress, held, ECONNREFUSED);
        c->held = held;
        c->errnum = ECONNREFUSED;
        c->asked = syn->to;
        c->port = c->target_port = syn->to_port;
        connection_judge(c);
}

void connection_publish(Egress *egress, int fd, uint16_t port) {
        Connection *c = connection_take(egress, fd);

        if (!c)
                return;
        c->published = true;
        c->port = port;
        connection_try_loopback(c, port);
}

void connection_ask(Egress *egress, int fd, Proxy *proxy) {
        Connection *c = connection_take(egress, fd);

        if (!c) {
                (void)proxy_free(proxy);
                return;
        }
        c->proxy = proxy;
        connection_judge_target(c, proxy_target(proxy));
}
