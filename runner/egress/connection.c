/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation. The local address of an accepted socket is the one that the program asked
 * for. It is a name's address, or one of a block that a rule names. A name is resolved, and its
 * addresses are tried in turn, a new one every quarter of a second (RFC 8305). The first that
 * answers is used.
 *
 * Its bytes are moved by connection-move.c. A refused connection is reset. */
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
#include "egress/dns-wire.h"
#include "egress/hello.h"
#include "egress/ports.h"
#include "egress/pump.h"
#include "egress/queue.h"
#include "egress/requests.h"
#include "egress/socket-address.h"

enum {
        ATTEMPT_PAUSE = 250000,   /* usec between attempts. */
        CONNECT_TIME = 130000000, /* usec: longer than the kernel tries. */
        ENTER_TIME = 10000000,    /* usec until a connection that is let in is accepted. */
};

const char *connection_name(const Connection *c) {
        return c->number >= 0 ? names_text(c->egress->names, (unsigned)c->number) : NULL;
}

/* --- the end --- */

static void attempts_close(Connection *c) {
        for (size_t i = 0; i < ATTEMPTS_MAX; i++) {
                if (c->published)
                        request_forget(c->egress, &c->attempts[i]);
                c->attempts[i].watch = loop_unwatch(c->attempts[i].watch);
                c->attempts[i].fd = fd_close(c->attempts[i].fd);
        }
        c->attempts_open = 0;
}

static void connection_tell(const Connection *c, EgressEventType type, EgressReason reason,
                            int errnum) {
        EgressEvent event = { .type = type,
                              .reason = reason,
                              .errnum = (uint32_t)errnum,
                              .port = c->port,
                              .family = c->asked.family,
                              .sent = c->up.moved,
                              .received = c->down.moved,
                              .started_ms = c->started_ms,
                              .ended_ms = time_epoch_ms() };
        const NetAddress *address = c->tried > 0 ? &c->targets[c->tried - 1] : &c->asked;
        const char *name = connection_name(c);

        if (c->published) {
                /* The host is the client, and the sandbox the server. */
                event.inside = c->port;
                event.sent = c->down.moved;
                event.received = c->up.moved;
        }
        event.family = address->family;
        memcpy(event.address, address->bytes, sizeof(event.address));
        (void)snprintf(event.name, sizeof(event.name), "%s", name ? name : "");
        egress_send(c->egress, &event);
}

static void socket_reset(int fd) {
        const struct linger reset = { .l_onoff = 1 };

        if (fd >= 0)
                (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

static void connection_drop(Connection *c, bool reset) {
        Egress *egress = c->egress;

        c->held = queue_release(egress, c->held, c->errnum);
        if (c->state == CONNECTION_RESOLVES && c->number >= 0)
                names_forget(egress->names, (unsigned)c->number, c);
        attempts_close(c);
        c->client_watch = loop_unwatch(c->client_watch);
        c->server_watch = loop_unwatch(c->server_watch);
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
        free(c);
}

void connection_refuse(Connection *c, EgressReason reason, const char *other) {
        EgressEvent event = egress_denial(c->egress, reason, connection_name(c), &c->asked, c->port,
                                          other);

        c->errnum = reason == EGRESS_NO_ADDRESS ? ENETUNREACH : ECONNREFUSED;
        if (c->held)
                event.errnum = (uint32_t)c->errnum;
        egress_send(c->egress, &event);
        connection_drop(c, true);
}

void connection_end(Connection *c, int errnum) {
        connection_tell(c, EGRESS_CLOSED, 0, errnum);
        connection_drop(c, errnum != 0);
}

/* --- connecting --- */

static void connection_open(Connection *c, Attempt *attempt) {
        attempt->watch = loop_unwatch(attempt->watch);
        c->server_fd = TAKE_FD(attempt->fd);
        c->tried = (size_t)(attempt - c->attempts) + 1; /* A later one may have been started. */
        attempts_close(c);
        if (!c->held)
                return connection_begin_judged(c);
        c->state = CONNECTION_ENTERS;
        loop_timer_set(c->timer, time_now_usec() + ENTER_TIME);
        queue_let_in(c->egress, c->held);
}

static void connection_try(Connection *c);

/* Ends the connection if no address is left. */
static void attempt_failed(Connection *c, Attempt *attempt, int errnum) {
        attempt->watch = loop_unwatch(attempt->watch);
        attempt->fd = fd_close(attempt->fd);
        c->attempts_open--;
        c->errnum = errnum;
        connection_try(c);
}

static void attempt_on_event(void *data, uint32_t events) {
        Attempt *attempt = data;
        int errnum = 0;
        socklen_t length = sizeof(errnum);

        (void)events;
        if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &errnum, &length) < 0)
                errnum = errno;
        /* If the peer has already reset it, the connection was open, and opens inside too. */
        if (errnum == ECONNRESET && attempt->connection->held)
                attempt->connection->broken = true;
        else if (errnum)
                return attempt_failed(attempt->connection, attempt, errnum);
        connection_open(attempt->connection, attempt);
}

/* Settings of both sockets. Bytes are passed on at once, and an urgent byte like others. */
static void socket_set(int fd) {
        const int on = 1;

        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        (void)setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
}

/* Connects the attempt's socket. Returns 0 or a negative errno. */
static int attempt_connect(Attempt *attempt, const NetAddress *target, uint16_t port) {
        struct sockaddr_storage storage;
        const socklen_t length = socket_address_set(target, port, &storage);

        socket_set(attempt->fd);
        if (connect(attempt->fd, (const struct sockaddr *)&storage, length) < 0 &&
            errno != EINPROGRESS)
                return -errno;
        return loop_watch(attempt->connection->egress->loop, attempt->fd, EPOLLOUT,
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
        return attempt->fd < 0 ? -errno : attempt_connect(attempt, target, c->target_port);
}

static void connection_unreached(Connection *c) {
        /* The host's client learns it. For the sandbox, it is no failed connection. */
        if (!c->published)
                connection_tell(c, EGRESS_FAILED, EGRESS_UNREACHED, c->errnum);
        connection_drop(c, true);
}

static bool connection_has_more(const Connection *c) {
        return c->tried < c->targets_count && c->tried < ATTEMPTS_MAX;
}

/* Tries the next address, or ends the connection if all have failed. The last one has as much time
 * as the kernel gives it. */
static void connection_try(Connection *c) {
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
                return connection_unreached(c);
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
        connection_unreached(c);
}

/* --- judging --- */

/* Adds an address of the name, unless it is a private one that no block allows. */
static void connection_add_target(Connection *c, const NetAddress *address, const char **refused) {
        const char *why = net_address_forbidden(address);

        if (why && !net_rules_find_address(&c->egress->rules, address, c->port))
                *refused = why;
        else
                c->targets[c->targets_count++] = *address;
}

static void connection_on_addresses(void *data, const NameResult *result) {
        Connection *c = data;
        const char *refused = NULL;

        c->state = CONNECTION_CONNECTS;
        /* Addresses of the family that the program has chosen come first. */
        for (int other = 0; other <= 1; other++)
                for (size_t i = 0; i < result->count; i++)
                        if ((result->items[i].family != c->asked.family) == other)
                                connection_add_target(c, &result->items[i], &refused);
        if (c->targets_count == 0 && refused)
                return connection_refuse(c, EGRESS_PRIVATE, refused);
        c->errnum = EHOSTUNREACH;
        connection_try(c);
}

/* Connects to a port of the loopback: the sandbox's for a published port, otherwise the host's. */
static void connection_try_loopback(Connection *c, uint16_t port) {
        c->state = CONNECTION_CONNECTS;
        c->target_port = port;
        for (size_t i = 0; i < ELEMENTSOF(net_loopback); i++)
                c->targets[c->targets_count++] = net_loopback[i];
        connection_try(c);
}

static void connection_judge(Connection *c) {
        Egress *egress = c->egress;
        const NetPort *imported = ports_imported(egress, &c->asked, c->port);
        const char *name;

        if (imported)
                return connection_try_loopback(c, imported->host);
        c->number = net_address_number(&c->asked);
        name = connection_name(c);
        if (name) {
                c->rule = net_rules_find(&egress->rules, name, c->port);
                if (!c->rule)
                        return connection_refuse(c, EGRESS_NO_PORT, NULL);
                return names_resolve(egress->names, (unsigned)c->number, connection_on_addresses,
                                     c);
        }
        c->number = -1;
        c->rule = net_rules_find_address(&egress->rules, &c->asked, c->port);
        if (!c->rule && net_rules_address(&egress->rules, &c->asked))
                return connection_refuse(c, EGRESS_NO_PORT, NULL);
        if (!c->rule)
                return connection_refuse(c, EGRESS_NO_ADDRESS, NULL);
        c->targets[c->targets_count++] = c->asked;
        c->state = CONNECTION_CONNECTS;
        connection_try(c);
}

/* Reads the local address of the accepted socket. */
static int connection_read_asked(Connection *c) {
        int r = socket_address_own(c->client_fd, &c->asked, &c->port);

        c->target_port = c->port;
        return r;
}

/* Takes over the client's socket. */
static int connection_join(Connection *c, int fd) {
        const uint32_t events = EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET;

        c->client_fd = fd;
        socket_set(fd);
        return loop_watch(c->egress->loop, fd, events, connection_on_client, c, &c->client_watch,
                          NULL);
}

static int connection_prepare(Connection *c, int fd) {
        int r = loop_timer_new(c->egress->loop, connection_on_time, c, &c->timer, NULL);

        for (size_t i = 0; i < ATTEMPTS_MAX; i++)
                c->attempts[i] = (Attempt){ .connection = c, .fd = FD_NONE };
        c->up.pipe[0] = c->up.pipe[1] = c->down.pipe[0] = c->down.pipe[1] = FD_NONE;
        return r == 0 && fd >= 0 ? connection_join(c, fd) : r;
}

/* If too many connections are open, the one that has waited longest is refused: a program that has
 * given up leaves its packet in the queue. */
static void connection_make_room(const Egress *egress) {
        Connection *oldest = NULL;

        if (egress->connections_count < CONNECTIONS_MAX)
                return;
        for (Connection *c = egress->connections; c; c = c->next)
                if (c->held && c->state <= CONNECTION_CONNECTS)
                        oldest = c;
        if (oldest)
                connection_refuse(oldest, EGRESS_BUSY, NULL);
}

/* Makes a connection for an accepted socket, or for none yet. Returns NULL if that is not possible.
 */
static Connection *connection_take(Egress *egress, int fd) {
        Connection *c;

        connection_make_room(egress);
        c = egress->connections_count < CONNECTIONS_MAX ? calloc(1, sizeof(*c)) : NULL;
        if (!c) {
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

/* The connection that is let in has arrived. */
static void connection_enter(Connection *c, int fd) {
        c->held = NULL;
        if (connection_join(c, fd) < 0 || c->broken)
                return connection_end(c, c->broken ? ECONNRESET : ENOMEM);
        connection_begin_judged(c);
}

void connection_accept(Egress *egress, int fd) {
        Connection *c = queue_take(egress, fd);

        if (c)
                return connection_enter(c, fd);
        c = connection_take(egress, fd);
        if (!c)
                return;
        if (connection_read_asked(c) < 0)
                return connection_drop(c, true);
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
