/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/tunnel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/list.h"
#include "base/strings.h"
#include "base/time.h"
#include "gateway/client.h"
#include "gateway/frames.h"
#include "gateway/server.h"
#include "gateway/transfer.h"
#include "gateway/tunnel-head.h"
#include "gateway/tunnel-inside.h"

enum {
        BLOCK = 64 << 10,
        TURN = 16,         /* Blocks that one call moves, so that others are served, too. */
        CLOSE_TIME = 10,   /* Seconds that one side may take to end after the other one. */
        PAUSE_TIME = 3600, /* Seconds without bytes, if the route has no timeout. */
        KEY_LENGTH = 24,   /* Bytes of a nonce in base64. */
};

typedef struct Tunnel {
        struct Tunnel *next; /* in gateway->tunnels, while bytes pass */
        Exchange *e;
        int upstream_fd;
        TunnelInside inside;
        LoopWatch *upstream_watch, *inside_watch;
        LoopTimer *timer;
        Buffer head;  /* the response up to its body */
        size_t heads; /* bytes of complete heads */
        FrameReader frames;
        uint64_t moved_at;  /* usec: bytes have passed */
        uint64_t left;      /* bytes of the body of a response that is no upgrade */
        size_t refused;     /* bytes of e->up that libcurl could not send yet */
        bool switched;      /* the upstream has sent 101 */
        bool upstream_done; /* sends nothing more */
        bool inside_done;
        bool upstream_shut; /* was told that nothing more comes */
        bool inside_shut;
        bool again; /* the turn has ended before everything was moved */
} Tunnel;

/* --- the request --- */

static const char *tunnel_header(const Exchange *e, const char *name) {
        return MHD_lookup_connection_value(e->connection, MHD_HEADER_KIND, name);
}

static bool header_lists(const Exchange *e, const char *name, const char *word) {
        const char *value = tunnel_header(e, name);

        return value && header_has_word(value, word);
}

void tunnel_prepare(Exchange *e, bool http_1_1) {
        const char *key = tunnel_header(e, "Sec-WebSocket-Key"),
                   *version = tunnel_header(e, "Sec-WebSocket-Version");

        if (!header_lists(e, "Upgrade", "websocket"))
                return;
        if (!http_1_1 || !streq(e->method, "GET") || e->length != 0 ||
            !header_lists(e, "Connection", "upgrade") || !key || strlen(key) != KEY_LENGTH ||
            !version)
                return verdict_set(&e->verdict, 400, "the request for a WebSocket is malformed");
        e->tunnel = calloc(1, sizeof(*e->tunnel));
        if (!e->tunnel)
                return verdict_set(&e->verdict, 500, "holt-gateway is out of memory");
        e->tunnel->e = e;
        e->tunnel->upstream_fd = e->tunnel->inside.fd = -1;
}

/* --- the end --- */

void tunnel_free(Exchange *e) {
        Tunnel *t = e->tunnel;

        if (!t)
                return;
        (void)list_remove(&e->gateway->tunnels, t);
        (void)loop_unwatch(t->upstream_watch);
        (void)loop_unwatch(t->inside_watch);
        (void)loop_timer_free(t->timer);
        buffer_clear(&t->head);
        free(t);
        e->tunnel = NULL;
}

/* libmicrohttpd ends the other one, and calls exchange_on_end(). */
void tunnel_end(Exchange *e) {
        struct MHD_UpgradeResponseHandle *handle = e->tunnel->inside.handle;

        /* The program can still be told why. */
        if (e->tunnel->switched && e->tunnel->inside.fd < 0)
                e->answered = false;
        transfer_close(e);
        if (!handle)
                return exchange_resume(e);
        (void)MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
        e->gateway->resumed = true;
        loop_timer_set(e->gateway->turn_timer, time_now_usec());
}

static void tunnel_fail(Exchange *e, unsigned status, const char *what) {
        if (e->verdict.status == 0)
                verdict_set(&e->verdict, status, "%s:%u %s", e->route->host, e->route->port, what);
        tunnel_end(e);
}

/* --- the response --- */

/* Whether the upstream has switched to the protocol that was asked for, and to nothing else. */
static bool tunnel_is_agreed(const Exchange *e) {
        bool extensions = false, accept = false;

        for (size_t i = 0; i < e->answer.count; i++) {
                extensions |= strncasecmp(e->answer.items[i], "sec-websocket-extensions:", 25) == 0;
                accept |= strncasecmp(e->answer.items[i], "sec-websocket-accept:", 21) == 0;
        }
        return e->upgrades && accept && !extensions;
}

/* Checks the limits before bytes go on. Returns 0 or -EDQUOT. */
static int tunnel_check_limits(Exchange *e) {
        const Route *route = e->route;

        if (route->body_max && e->sent > route->body_max)
                verdict_set(&e->verdict, 413, "this route carries bodies of at most %llu bytes",
                            (unsigned long long)route->body_max);
        else
                (void)judge_bytes(route, 0, &e->verdict);
        return e->verdict.status ? -EDQUOT : 0;
}

static int tunnel_take_body(Exchange *e, const char *bytes, size_t length) {
        Tunnel *t = e->tunnel;

        if (!t->switched) {
                length = length < t->left ? length : (size_t)t->left;
                t->left -= t->left == LENGTH_UNKNOWN ? 0 : length;
        }
        e->received += length;
        e->route->bytes += length;
        if (tunnel_check_limits(e) < 0)
                return -EDQUOT;
        return t->switched ? frames_feed(&t->frames, &e->scrub, bytes, length, &e->down)
                           : scrub_feed(&e->scrub, bytes, length, false, &e->down);
}

/* Notes how long the body of an ordinary response is. A body in chunks is left out. */
static void tunnel_note_length(Exchange *e) {
        if (e->chunked)
                e->answer_length = 0;
        e->tunnel->left = e->answer_length;
}

/* Takes the head of a response, and heads of 1xx before it. */
static int tunnel_take_heads(Exchange *e) {
        Tunnel *t = e->tunnel;
        int r = 0;

        while (r == 0 && !e->answered) {
                const char *head = t->head.data + t->head.start;
                const ssize_t n = tunnel_head_length(head, t->head.length);

                if (n <= 0)
                        return (int)n;
                r = tunnel_take_head(e, head, (size_t)n);
                buffer_drop(&t->head, (size_t)n);
                t->heads += (size_t)n;
                t->switched = r == 0 && e->status == 101;
                e->answered |= t->switched;
                if (t->heads > TUNNEL_HEAD_MAX || (t->switched && !tunnel_is_agreed(e)))
                        r = -EPROTO;
        }
        if (r < 0)
                return r;
        if (!t->switched)
                tunnel_note_length(e);
        r = tunnel_take_body(e, t->head.data + t->head.start, t->head.length);
        buffer_clear(&t->head);
        if (r == 0)
                exchange_resume(e);
        return r;
}

static int tunnel_take(Exchange *e, const char *bytes, size_t length) {
        int r;

        if (e->answered)
                return tunnel_take_body(e, bytes, length);
        r = pipe_buffer_add(&e->tunnel->head, bytes, length);
        return r < 0 ? r : tunnel_take_heads(e);
}

/* --- moving bytes --- */

/* Each function moves a block. It returns 1 if it has moved bytes, 0 if it cannot now, or a
 * negative errno. */

static int tunnel_read_upstream(Exchange *e, char *block) {
        Tunnel *t = e->tunnel;
        size_t n = 0;
        CURLcode code;
        int r;

        if (t->upstream_done || buffer_is_full(&e->down))
                return 0;
        code = curl_easy_recv(e->easy, block, BLOCK, &n);
        if (code == CURLE_AGAIN)
                return 0;
        if (code != CURLE_OK)
                return -ECONNRESET;
        if (n > 0)
                r = tunnel_take(e, block, n);
        else
                r = scrub_feed(&e->scrub, NULL, 0, true, &e->down);
        t->upstream_done = n == 0;
        return r < 0 ? r : 1;
}

/* OpenSSL's SSL_write(3) must be called again with the same pointer and length. Thus nothing is
 * added to e->up, which could move it, until libcurl has taken the bytes that it refused. */
static int tunnel_write_upstream(Exchange *e, char *block) {
        Tunnel *t = e->tunnel;
        const size_t length = t->refused ? t->refused : e->up.length;
        size_t n = 0;
        CURLcode code;

        (void)block;
        if (e->up.length == 0) {
                if (t->inside_done && !t->upstream_shut)
                        (void)shutdown(t->upstream_fd, SHUT_WR);
                t->upstream_shut |= t->inside_done;
                return 0;
        }
        code = curl_easy_send(e->easy, e->up.data + e->up.start, length, &n);
        t->refused = code == CURLE_AGAIN ? length : 0;
        if (code == CURLE_AGAIN)
                return 0;
        if (code != CURLE_OK)
                return -EPIPE;
        buffer_drop(&e->up, n);
        return n > 0;
}

static bool tunnel_takes_more(const Tunnel *t) {
        return !t->inside_done && t->refused == 0 && !buffer_is_full(&t->e->up);
}

static int tunnel_read_inside(Exchange *e, char *block) {
        Tunnel *t = e->tunnel;
        ssize_t n;

        if (t->inside.fd < 0 || !tunnel_takes_more(t))
                return 0;
        n = tunnel_inside_receive(&t->inside, block, BLOCK);
        if (n < 0)
                return n == -EAGAIN || n == -EINTR ? 0 : (int)n;
        t->inside_done = n == 0;
        e->sent += (uint64_t)n;
        e->route->bytes += (uint64_t)n;
        if (tunnel_check_limits(e) < 0)
                return -EDQUOT;
        return pipe_buffer_add(&e->up, block, (size_t)n) < 0 ? -ENOMEM : 1;
}

static int tunnel_write_inside(Exchange *e, char *block) {
        Tunnel *t = e->tunnel;
        ssize_t n;

        (void)block;
        if (t->inside.fd < 0)
                return 0;
        if (e->down.length == 0) {
                if (t->upstream_done && !t->inside_shut)
                        tunnel_inside_shut(&t->inside);
                t->inside_shut |= t->upstream_done;
                return 0;
        }
        n = tunnel_inside_send(&t->inside, e->down.data + e->down.start, e->down.length);
        if (n < 0)
                return n == -EAGAIN || n == -EINTR ? 0 : (int)n;
        buffer_drop(&e->down, (size_t)n);
        return n > 0;
}

static int (*const moves[])(Exchange *e, char *block) = {
        tunnel_write_upstream,
        tunnel_read_upstream,
        tunnel_write_inside,
        tunnel_read_inside,
};

/* Moves what can be moved now. Returns 0 or a negative errno. */
static int tunnel_move(Exchange *e) {
        static char block[BLOCK];
        Tunnel *t = e->tunnel;
        bool moved = true;

        for (int i = 0; i < TURN && moved; i++) {
                moved = false;
                for (size_t k = 0; k < ELEMENTSOF(moves); k++) {
                        int r = moves[k](e, block);

                        if (r < 0)
                                return r;
                        moved |= r > 0;
                }
                if (moved)
                        t->moved_at = time_now_usec();
        }
        t->again = moved;
        return 0;
}

/* --- the loop --- */

static void tunnel_on_event(void *data, uint32_t events);

/* Watches only for what can be handled: epoll(7) would report the end of a connection again and
 * again, even if no event was asked for. */
static int tunnel_watch(Tunnel *t, int fd, uint32_t events, LoopWatch **watch) {
        if (events == 0 || fd < 0) {
                *watch = loop_unwatch(*watch);
                return 0;
        }
        if (!*watch)
                return loop_watch(t->e->gateway->loop, fd, events, tunnel_on_event, t->e, watch,
                                  NULL);
        loop_watch_set(*watch, events);
        return 0;
}

static uint64_t tunnel_deadline(const Tunnel *t) {
        const uint64_t pause = t->e->route->timeout ? t->e->route->timeout * 1000
                                                    : PAUSE_TIME * 1000000ULL;

        if (t->again)
                return time_now_usec();
        return t->moved_at + (t->inside_done || t->upstream_done ? CLOSE_TIME * 1000000ULL : pause);
}

static int tunnel_arm(Tunnel *t) {
        const Exchange *e = t->e;
        const uint32_t up_in = t->upstream_done || buffer_is_full(&e->down) ? 0 : EPOLLIN;
        const uint32_t in_in = tunnel_takes_more(t) ? EPOLLIN : 0;
        int r = tunnel_watch(t, t->upstream_fd, up_in | (e->up.length ? EPOLLOUT : 0U),
                             &t->upstream_watch);

        if (r == 0)
                r = tunnel_watch(t, t->inside.fd, in_in | (e->down.length ? EPOLLOUT : 0U),
                                 &t->inside_watch);
        loop_timer_set(t->timer, tunnel_deadline(t));
        return r;
}

/* Ends a response that is no upgrade. The program gets the rest of it from the buffer. */
static void tunnel_end_answer(Exchange *e) {
        const Tunnel *t = e->tunnel;

        if (!e->answered)
                return tunnel_fail(e, 502, "closed the connection without an answer");
        if (t->left > 0 && t->left != LENGTH_UNKNOWN)
                return tunnel_fail(e, 502, "closed the connection within its answer");
        if (scrub_feed(&e->scrub, NULL, 0, true, &e->down) < 0)
                return tunnel_fail(e, 502, "has sent too much for the memory");
        tunnel_end(e);
}

static void tunnel_turn(Exchange *e) {
        Tunnel *t = e->tunnel;
        int r = tunnel_move(e);

        if (r == -EDQUOT)
                return tunnel_end(e);
        if (r == -EPROTO)
                return tunnel_fail(e, 502, "sent an answer that cannot be passed on");
        if (r < 0)
                return tunnel_fail(e, 502, "or the program broke off the connection");
        if (!t->switched && (t->upstream_done || (e->answered && t->left == 0)))
                return tunnel_end_answer(e);
        if (t->upstream_shut && t->inside_shut)
                return tunnel_end(e);
        if (tunnel_arm(t) < 0)
                tunnel_fail(e, 502, "cannot be watched");
}

void tunnel_continue(Exchange *e) {
        if (e->tunnel && e->easy && e->tunnel->timer)
                loop_timer_set(e->tunnel->timer, time_now_usec());
}

static void tunnel_on_event(void *data, uint32_t events) {
        Exchange *e = data;
        Gateway *gateway = e->gateway;

        (void)events;
        tunnel_turn(e);
        server_turn(gateway);
}

static void tunnel_on_time(void *data) {
        Exchange *e = data;
        Gateway *gateway = e->gateway;
        Tunnel *t = e->tunnel;
        const bool late = !t->again && tunnel_deadline(t) <= time_now_usec();

        t->again = false;
        if (!late)
                tunnel_turn(e);
        else if (e->answered && (t->inside_done || t->upstream_done))
                tunnel_end(e);
        else
                tunnel_fail(e, 504,
                            e->answered ? "and the program were silent for too long"
                                        : "did not answer in time");
        server_turn(gateway);
}

/* --- the start --- */

static void tunnel_on_upgrade(void *data, struct MHD_Connection *connection, void *state,
                              const char *early, size_t early_length, MHD_socket fd,
                              struct MHD_UpgradeResponseHandle *handle) {
        Exchange *e = data;
        Tunnel *t = e->tunnel;

        (void)state;
        client_unwatch(connection);
        if (!t) { /* It ended while the response was on its way. */
                (void)MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
                return;
        }
        t->inside.handle = handle;
        t->inside.fd = fd;
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
        e->sent += early_length;
        e->route->bytes += early_length;
        if (tunnel_check_limits(e) < 0 || pipe_buffer_add(&e->up, early, early_length) < 0)
                return tunnel_fail(e, 502, "needs too much memory");
        tunnel_continue(e);
}

struct MHD_Response *tunnel_make_answer(Exchange *e) {
        struct MHD_Response *response = MHD_create_response_for_upgrade(tunnel_on_upgrade, e);

        if (response)
                (void)MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, "websocket");
        return response;
}

int tunnel_take_over(Exchange *e) {
        int r = tunnel_inside_take(e, &e->tunnel->inside);

        if (r == 0)
                tunnel_continue(e);
        return r;
}

void tunnel_start(Exchange *e) {
        Tunnel *t = e->tunnel;
        curl_socket_t fd = CURL_SOCKET_BAD;
        int r = tunnel_write_head(e, &e->up);

        if (r == -EINVAL) {
                verdict_set(&e->verdict, 400, "the target or a header is malformed");
                return tunnel_end(e);
        }
        if (r == 0 && curl_easy_getinfo(e->easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK)
                r = -EIO;
        if (r == 0)
                r = loop_timer_new(e->gateway->loop, tunnel_on_time, e, &t->timer, NULL);
        if (r < 0)
                return tunnel_fail(e, 502, "cannot be used");
        t->upstream_fd = fd;
        t->moved_at = time_now_usec();
        list_append(&e->gateway->tunnels, t);
        tunnel_turn(e);
}

void tunnels_tell(const Gateway *gateway) {
        for (const Tunnel *t = gateway->tunnels; t; t = t->next)
                exchange_tell(t->e);
}
