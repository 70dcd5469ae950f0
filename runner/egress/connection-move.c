/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation. The server's bytes are passed on at once, because in many protocols the
 * server speaks first. The first bytes of the client stay in its socket until hello.h knows the
 * protocol. The name in a TLS or HTTP greeting must be the name that was resolved.
 *
 * Only the first request of a plain HTTP connection is read. After it, both directions move inside
 * the kernel. A parser of later requests would need every byte of all bodies and replies, because a
 * reply (101) decides whether HTTP goes on. That would close no gap, because the same server
 * accepts the same requests inside TLS. There, only the SNI can be read. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/strings.h"
#include "egress/connection-internal.h"
#include "wire/http-proxy.h"

enum {
        HELLO_TIME = 30000000,  /* usec for a whole greeting, from its first byte. */
        HELLO_SILENCE = 200000, /* usec after which hello_finish() may decide. */
        REPLY_PAUSE = 300000, /* usec without more bytes, after which a reply counts as complete. */
};

/* --- moving --- */

/* Looks at the next chunk of a request to the proxy inside. Returns false if it is malformed. */
static bool connection_take_chunk(Connection *c, const uint8_t *data, size_t length) {
        bool last;
        int r = http_chunk_read(data, length, c->chunks == CHUNKS_FIRST, &c->up.left, &last);

        if (r == 0)
                c->up.readable = false; /* Until more bytes have come. */
        if (r > 0)
                c->chunks = last ? CHUNKS_NONE : CHUNKS_NEXT;
        return r >= 0;
}

/* Looks at the bytes behind the part of a request that may move. Returns 0; 1 if a client of the
 * proxy inside has sent more than the one request that the proxy has rewritten, because such bytes
 * could be a request for another host; or a negative errno. -ECONNRESET: a chunk is malformed, or
 * the client has ended in the middle of its request. */
static int connection_keep_to_request(Connection *c) {
        uint8_t data[HTTP_CHUNK_HEAD];
        ssize_t n;

        if (!c->up.limited || c->up.left > 0 || !c->up.readable || c->up.ended)
                return 0;
        n = recv(c->client_fd, data, sizeof(data), MSG_PEEK | MSG_DONTWAIT);
        c->up.ended = n == 0;
        if (n < 0 && errno != EAGAIN)
                return -errno;
        if (n < 0)
                c->up.readable = false;
        if (n <= 0)
                return 0;
        if (c->chunks == CHUNKS_NONE)
                return 1;
        if (!connection_take_chunk(c, data, (size_t)n))
                return -ECONNRESET;
        return c->up.ending && !c->up.readable ? -ECONNRESET : 0;
}

/* Whether more of the reply may come, although the client has already sent its next request. */
static bool connection_awaits_reply(Connection *c) {
        const uint64_t now = time_now_usec();

        if (!c->reply_until || c->reply_moved != c->down.moved) {
                c->reply_until = now + REPLY_PAUSE;
                c->reply_moved = c->down.moved;
        }
        return !c->down.shut && now < c->reply_until;
}

/* Whether another chunk may follow at once. */
static bool connection_has_chunk(const Connection *c) {
        return c->chunks != CHUNKS_NONE && c->up.left == 0 && c->up.readable && !c->up.ended;
}

/* Waits for events of one side. `from` moves the bytes of this side, and `to` moves bytes to it.
 * While the other side takes no bytes, new bytes need not wake the loop. */
static void side_watch(LoopWatch *watch, uint32_t *events, const Pump *from, const Pump *to) {
        if (!to->writable)
                *events |= EPOLLOUT;
        if (from->readable && !from->writable)
                *events &= ~(uint32_t)(EPOLLIN | EPOLLPRI);
        else
                *events |= EPOLLIN | EPOLLPRI;
        loop_watch_set(watch, *events);
}

static void connection_move(Connection *c) {
        int r = connection_keep_to_request(c), up = PUMP_WAITS, down;

        if (r < 0)
                return connection_end(c, -r);
        if (r > 0 && !connection_awaits_reply(c))
                return connection_end_request(c);
        down = pump_run(&c->down, c->egress->pipes, c->up.shut);
        if (c->state == CONNECTION_MOVES && down >= 0)
                up = pump_run(&c->up, c->egress->pipes, c->down.shut);
        if (down < 0 || up < 0)
                return connection_end(c, down < 0 ? -down : -up);
        if ((down == PUMP_DONE && up == PUMP_DONE) ||
            (c->egress->leaves && (c->published ? c->down.shut : c->up.shut)))
                return connection_end(c, 0);
        if (down == PUMP_BUSY || up == PUMP_BUSY || connection_has_chunk(c))
                loop_timer_set(c->timer, 1);
        else
                loop_timer_set(c->timer, c->reply_until ? c->reply_until
                                         : c->silent    ? c->silent
                                                        : c->deadline);
        side_watch(c->client_watch, &c->client_events, &c->up, &c->down);
        side_watch(c->server_watch, &c->server_events, &c->down, &c->up);
}

/* --- the client's greeting --- */

/* Judges the greeting. Returns false if the connection was refused, and is gone. */
static bool greeting_allowed(Connection *c, const Hello *hello) {
        const char *name = connection_name(c);

        if (!name || hello->kind == HELLO_OTHER)
                return true;
        if (hello->kind == HELLO_BAD) {
                connection_refuse(c, EGRESS_OTHER_HOST, "");
                return false;
        }
        if (hello->kind == HELLO_TLS && (hello->hidden || hello->name[0] == '\0') &&
            c->egress->sni == SNI_REQUIRED) {
                connection_refuse(c, EGRESS_NO_SNI, hello->name);
                return false;
        }
        if (hello->name[0] != '\0' && !streq(hello->name, name)) {
                connection_refuse(c,
                                  hello->kind == HELLO_TLS ? EGRESS_OTHER_SNI : EGRESS_OTHER_HOST,
                                  hello->name);
                return false;
        }
        return true;
}

/* Adds what the client has sent to the bytes that the server gets first. A look by recv(2) ends at
 * an urgent byte, but the server would also get the bytes after it. Returns the length, or a
 * negative errno. */
static ssize_t greeting_take(Pump *up) {
        ssize_t n = 1;

        if (!up->ahead)
                up->ahead_length = up->ahead_sent = 0;
        if (!up->ahead)
                up->ahead = malloc(HELLO_MAX);
        if (!up->ahead)
                return -ENOMEM;
        while (n > 0 && up->ahead_length < HELLO_MAX) {
                n = recv(up->from, up->ahead + up->ahead_length, HELLO_MAX - up->ahead_length,
                         MSG_DONTWAIT);
                up->ahead_length += n > 0 ? (size_t)n : 0;
        }
        if (n < 0 && errno != EAGAIN)
                return -errno;
        if (up->ahead_length > 0)
                return (ssize_t)up->ahead_length;
        free(up->ahead);
        up->ahead = NULL;
        return n < 0 ? -EAGAIN : 0;
}

/* Looks at what the client has sent. Returns its length, or a negative errno. */
static ssize_t greeting_look(Connection *c, const uint8_t **ret) {
        static uint8_t data[HELLO_MAX];
        ssize_t n;

        if (c->up.urgent || c->up.ahead) {
                n = greeting_take(&c->up);
                *ret = c->up.ahead;
                return n;
        }
        n = recv(c->client_fd, data, sizeof(data), MSG_PEEK | MSG_DONTWAIT);
        *ret = data;
        return n < 0 ? -errno : n;
}

/* Waits until the client has sent more than `have` bytes. SO_RCVLOWAT makes the kernel wait for so
 * many bytes. */
static void greeting_wait(Connection *c, int have) {
        const uint64_t now = time_now_usec();
        const int low = c->up.ahead ? 1 : have + 1;

        (void)setsockopt(c->client_fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof(low));
        if (!c->deadline)
                c->deadline = now + HELLO_TIME;
        c->silent = now + HELLO_SILENCE;
        connection_move(c);
}

static void greeting_end(Connection *c) {
        const int low = 1;

        if (!greeting_allowed(c, &c->hello))
                return;
        if (c->deadline)
                (void)setsockopt(c->client_fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof(low));
        c->state = CONNECTION_MOVES;
        c->deadline = c->silent = 0;
        connection_move(c);
}

static void connection_greet(Connection *c) {
        const uint8_t *data;
        const ssize_t n = greeting_look(c, &data);

        if (n < 0)
                return n == -EAGAIN ? connection_move(c) : connection_end(c, (int)-n);
        hello_read(data, (size_t)n, &c->hello);
        if (c->up.ending || n == 0)
                hello_finish(data, (size_t)n, true, &c->hello);
        if (c->hello.kind == HELLO_MORE)
                return greeting_wait(c, (int)n);
        greeting_end(c);
}

/* Judges a client that has sent the beginning of a greeting and then nothing more. If the beginning
 * is a word that is no method of HTTP, it belongs to another protocol, and passes. Otherwise the
 * client has time until the deadline. */
static void connection_silent(Connection *c) {
        Hello hello = c->hello;
        const uint8_t *data;
        const ssize_t n = greeting_look(c, &data);

        c->silent = 0;
        if (n > 0)
                hello_finish(data, (size_t)n, false, &hello);
        if (n > 0 && hello.kind == HELLO_OTHER) {
                c->hello = hello;
                return greeting_end(c);
        }
        loop_timer_set(c->timer, c->deadline);
}

/* Notes the events of one side. */
static void side_note(uint32_t events, Pump *from, Pump *to) {
        if (events & (EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
                from->readable = true;
        if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
                from->ending = true;
        if (events & EPOLLPRI)
                from->urgent = true;
        if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
                to->writable = true;
}

void connection_on_client(void *data, uint32_t events) {
        Connection *c = data;

        side_note(events, &c->up, &c->down);
        if (c->state == CONNECTION_GREETS) {
                if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
                        return connection_greet(c);
        } else if (c->state != CONNECTION_MOVES) {
                if (c->state == CONNECTION_ASKS && events & (EPOLLHUP | EPOLLERR))
                        return connection_refuse(c, EGRESS_NO_ANSWER, NULL);
                /* The program has given up. It cannot have closed only its own direction, because
                 * for that it needs an open connection. */
                if (events & (EPOLLHUP | EPOLLERR))
                        connection_end(c, ECONNRESET);
                return;
        }
        connection_move(c);
}

void connection_on_server(void *data, uint32_t events) {
        Connection *c = data;

        side_note(events, &c->down, &c->up);
        if (c->state >= CONNECTION_GREETS)
                connection_move(c);
}

/* --- the start, and the time --- */

/* Replies to a client of the proxy inside. Returns 0 or a negative errno. */
static int connection_open_proxy(Connection *c) {
        Pump *up = &c->up;
        uint64_t body = HTTP_PROXY_ENDLESS;
        int r = 0;

        if (c->proxy)
                r = proxy_open(c->proxy, c->client_fd, &up->ahead, &up->ahead_length, &body);
        up->limited = up->ahead != NULL;
        c->chunks = up->limited && body == HTTP_PROXY_CHUNKED ? CHUNKS_FIRST : CHUNKS_NONE;
        up->left = c->chunks == CHUNKS_FIRST ? 0 : body;
        c->proxy = proxy_free(c->proxy);
        return r;
}

/* Lets the pumps begin. Both sides are connected, so they take bytes; events say if they have any.
 */
static void connection_set_pumps(Connection *c) {
        c->up.from = c->down.to = c->client_fd;
        c->up.to = c->down.from = c->server_fd;
        c->up.writable = c->down.writable = true;
}

/* Waits for the server's events. The watch of a successful attempt to connect already does so. */
static int connection_watch_server(Connection *c) {
        if (c->server_watch)
                return 0;
        c->server_events = SIDE_EVENTS;
        return loop_watch(c->egress->loop, c->server_fd, SIDE_EVENTS, connection_on_server, c,
                          &c->server_watch, NULL);
}

void connection_begin_judged(Connection *c) {
        int r;

        loop_timer_set(c->timer, 0);
        connection_set_pumps(c);
        c->state = CONNECTION_GREETS;
        r = connection_open_proxy(c);
        if (r == 0)
                r = connection_watch_server(c);
        if (r < 0)
                return connection_end(c, -r);
        /* A request that the proxy has written anew names the host that was judged. If the address
         * stands for no name, no greeting is judged. */
        if (c->up.ahead || !connection_name(c))
                return greeting_end(c);
        if (c->up.readable)
                return connection_greet(c);
        connection_move(c);
}

void connection_move_on_time(Connection *c) {
        const uint64_t now = time_now_usec();

        if (c->state == CONNECTION_GREETS && c->deadline && now >= c->deadline)
                return connection_refuse(c, EGRESS_OTHER_HOST, "");
        if (c->state == CONNECTION_GREETS && c->silent && now >= c->silent)
                return connection_silent(c);
        connection_move(c);
}
