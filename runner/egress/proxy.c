/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation. The first byte of a client tells SOCKS5 from HTTP. The proxy takes exactly
 * the bytes of the request from the socket. The bytes behind it are for the target, and stay in the
 * socket until connection.c has looked at them. When the request is known, connection.c owns the
 * socket.
 *
 * A refused client gets one reply. Closing a socket with unread bytes resets it, and the client
 * could lose the reply. So the proxy ends its side, and drops what the client still sends. The same
 * goes for a client that sends another request after the reply of its server. */
#include "egress/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/list.h"
#include "base/strings.h"
#include "egress/connection.h"
#include "wire/http-proxy.h"
#include "wire/socks.h"
#include "network/denials.h"

enum {
        PROXIES_MAX = 1024,         /* Clients that have not sent their request, or whose
                                       last bytes are being dropped. */
        PROXY_BYTES_MAX = 16 << 20, /* Bytes of all requests together. */
        PROXY_ROOM = 2048,          /* Bytes of most requests. */
        PROXY_TIME = 30000000,      /* usec for a whole request. */
        PROXY_LINGER = 2000000,     /* usec for reading the rest after a refusal. */
        PROXY_LINGER_TURN = 16,     /* Reads until others have their turn. */
        PROXY_LINE = 1536,          /* Bytes of a reason. */
        SOCKS4_FIRST = 4,           /* The first byte of a client with SOCKS4. */
        SOCKS4_REFUSED = 0x5b,
};

typedef enum ProxyStage {
        PROXY_UNKNOWN,        /* The client has sent nothing. */
        PROXY_SOCKS_GREETING, /* The first message of SOCKS5. */
        PROXY_SOCKS_REQUEST,
        PROXY_HTTP,
        PROXY_LINGERS, /* The reply was sent. */
        PROXY_STAGE_MAX,
} ProxyStage;

struct Proxy {
        struct Proxy *next;
        Egress *egress;
        ProxyStage stage;
        int fd; /* FD_NONE once connection.c has it. */
        LoopWatch *watch;
        LoopTimer *timer;
        uint8_t *data; /* The bytes of the request that were taken. */
        size_t length, room;
        Authority target;
        HttpProxyRequest http;
};

/* --- the life of a client --- */

Proxy *proxy_free(Proxy *proxy) {
        if (!proxy)
                return NULL;
        proxy->watch = loop_unwatch(proxy->watch);
        proxy->timer = loop_timer_free(proxy->timer);
        if (list_remove(&proxy->egress->proxies, proxy))
                proxy->egress->proxies_count--;
        proxy->egress->proxies_bytes -= proxy->room;
        fd_close(proxy->fd);
        free(proxy->data);
        free(proxy);
        return NULL;
}

static void proxy_on_time(void *data);

/* Begins to watch the socket, with a deadline. */
static int proxy_watch(Proxy *proxy, LoopWatchFn fn, uint64_t time) {
        int r = loop_timer_new(proxy->egress->loop, proxy_on_time, proxy, &proxy->timer, NULL);

        if (r == 0)
                r = loop_watch(proxy->egress->loop, proxy->fd, EPOLLIN, fn, proxy, &proxy->watch,
                               NULL);
        if (r == 0)
                loop_timer_set(proxy->timer, time_now_usec() + time);
        list_push(&proxy->egress->proxies, proxy);
        proxy->egress->proxies_count++;
        return r;
}

static void proxy_on_rest(void *data, uint32_t events) {
        static uint8_t scrap[65536];
        Proxy *proxy = data;

        (void)events;
        for (int i = 0; i < PROXY_LINGER_TURN; i++) {
                ssize_t n = recv(proxy->fd, scrap, sizeof(scrap), MSG_DONTWAIT);

                if (n < 0 && errno == EAGAIN)
                        return;
                if (n <= 0) {
                        (void)proxy_free(proxy);
                        return;
                }
        }
}

/* Ends the proxy's side after its reply, and drops what still comes. */
static void proxy_linger(Proxy *proxy) {
        proxy->watch = loop_unwatch(proxy->watch);
        proxy->timer = loop_timer_free(proxy->timer);
        if (list_remove(&proxy->egress->proxies, proxy))
                proxy->egress->proxies_count--;
        proxy->stage = PROXY_LINGERS;
        if (proxy->egress->proxies_count >= PROXIES_MAX || shutdown(proxy->fd, SHUT_WR) < 0 ||
            proxy_watch(proxy, proxy_on_rest, PROXY_LINGER) < 0)
                (void)proxy_free(proxy);
}

/* --- replies --- */

/* Sends a reply. The socket's buffer has room, because the reply is short and nothing was sent
 * before. */
static int proxy_send(int fd, const void *data, size_t length) {
        ssize_t n = send(fd, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0)
                return -errno;
        return (size_t)n == length ? 0 : -EAGAIN;
}

/* Sends a reply of HTTP. The reason is one line; many clients show it, and few show the body. */
static void proxy_send_http(Proxy *proxy, unsigned status, const char *line) {
        char reply[2 * PROXY_LINE + 200];

        (void)snprintf(reply, sizeof(reply),
                       "HTTP/1.1 %u %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                       "Connection: close\r\n\r\nholt: %s\n",
                       status, line, strlen(line) + strlen("holt: \n"), line);
        (void)proxy_send(proxy->fd, reply, strlen(reply));
        proxy_linger(proxy);
}

static void proxy_send_socks(Proxy *proxy, int code) {
        uint8_t reply[SOCKS_REPLY_MAX];
        const size_t length = socks_reply(code, reply);

        (void)proxy_send(proxy->fd, reply, length);
        proxy_linger(proxy);
}

/* --- the request --- */

/* Each reader gets all `length` bytes that the client has sent so far. It returns the length of its
 * message; 0 if more bytes are needed; or -EPIPE if it has replied, and the client is lost. */
typedef ssize_t (*ProxyReader)(Proxy *proxy, size_t length);

static ssize_t proxy_read_first(Proxy *proxy, size_t length);

static ssize_t proxy_read_greeting(Proxy *proxy, size_t length) {
        uint8_t reply[SOCKS_GREETING_REPLY];
        int r = socks_greeting(proxy->data, length, reply);

        if (r == -EBADMSG) {
                proxy_linger(proxy);
                return -EPIPE;
        }
        if (r == 0)
                return 0;
        if (proxy_send(proxy->fd, reply, sizeof(reply)) < 0 || r < 0) {
                proxy_linger(proxy);
                return -EPIPE;
        }
        proxy->stage = PROXY_SOCKS_REQUEST;
        return r;
}

static ssize_t proxy_read_socks(Proxy *proxy, size_t length) {
        int r = socks_request(proxy->data, length, &proxy->target);

        if (r < 0) {
                proxy_send_socks(proxy, -r);
                return -EPIPE;
        }
        return r;
}

static ssize_t proxy_read_http(Proxy *proxy, size_t length) {
        http_proxy_read(proxy->data, length, &proxy->http);
        if (proxy->http.kind == HTTP_PROXY_BAD) {
                char line[PROXY_LINE];

                (void)snprintf(line, sizeof(line), "The proxy refuses %s", proxy->http.why);
                proxy_send_http(proxy, 400, line);
                return -EPIPE;
        }
        proxy->target = proxy->http.target;
        return proxy->http.kind == HTTP_PROXY_MORE ? 0 : (ssize_t)proxy->http.length;
}

static const ProxyReader readers[] = {
        [PROXY_UNKNOWN] = proxy_read_first,
        [PROXY_SOCKS_GREETING] = proxy_read_greeting,
        [PROXY_SOCKS_REQUEST] = proxy_read_socks,
        [PROXY_HTTP] = proxy_read_http,
        [PROXY_LINGERS] = NULL,
};
static_assert(ELEMENTSOF(readers) == PROXY_STAGE_MAX, "every stage has a reader");

/* Finds the protocol by the first byte. A client of an unknown protocol could not read a reply, so
 * its connection ends at once. */
static ssize_t proxy_read_first(Proxy *proxy, size_t length) {
        static const uint8_t socks4[8] = { 0, SOCKS4_REFUSED };

        if (proxy->data[0] == SOCKS_FIRST) {
                proxy->stage = PROXY_SOCKS_GREETING;
        } else if (http_is_token(proxy->data[0])) {
                proxy->stage = PROXY_HTTP;
        } else {
                if (proxy->data[0] == SOCKS4_FIRST)
                        (void)proxy_send(proxy->fd, socks4, sizeof(socks4));
                proxy_linger(proxy);
                return -EPIPE;
        }
        return readers[proxy->stage](proxy, length);
}

/* Makes room for more bytes. Returns 0, -ENOMEM, or -ENOBUFS if all requests are too long. */
static int proxy_grow(Proxy *proxy) {
        const size_t room = proxy->room ? proxy->room * 2 : PROXY_ROOM;
        uint8_t *grown;

        if (proxy->length < proxy->room)
                return 0;
        if (proxy->egress->proxies_bytes + room - proxy->room > PROXY_BYTES_MAX)
                return -ENOBUFS;
        grown = realloc(proxy->data, room);
        if (!grown)
                return -ENOMEM;
        proxy->egress->proxies_bytes += room - proxy->room;
        proxy->data = grown;
        proxy->room = room;
        return 0;
}

/* The request is complete: from now on, connection.c has the socket. */
static void proxy_hand_over(Proxy *proxy) {
        Egress *egress = proxy->egress;

        proxy->watch = loop_unwatch(proxy->watch);
        proxy->timer = loop_timer_free(proxy->timer);
        (void)list_remove(&egress->proxies, proxy);
        egress->proxies_count--;
        connection_ask(egress, TAKE_FD(proxy->fd), proxy);
}

/* Takes the rest of a message from the socket, until proxy->data has `end` bytes. */
static bool proxy_take(Proxy *proxy, size_t end) {
        const size_t more = end - proxy->length;
        ssize_t n = recv(proxy->fd, proxy->data + proxy->length, more, MSG_DONTWAIT);

        proxy->length = end;
        return n == (ssize_t)more;
}

/* Reads one message or a part of one. Returns whether there may be more to read. */
static bool proxy_read(Proxy *proxy) {
        const ProxyStage stage = proxy->stage;
        ssize_t n = -1, used;

        if (proxy_grow(proxy) == 0)
                n = recv(proxy->fd, proxy->data + proxy->length, proxy->room - proxy->length,
                         MSG_PEEK | MSG_DONTWAIT);
        else
                errno = ENOBUFS;
        if (n < 0 && errno == EAGAIN)
                return false;
        if (n <= 0) {
                (void)proxy_free(proxy);
                return false;
        }
        n += (ssize_t)proxy->length;
        used = readers[stage](proxy, (size_t)n);
        if (used < 0)
                return false;
        if (!proxy_take(proxy, (size_t)(used ? used : n))) {
                (void)proxy_free(proxy);
                return false;
        }
        if (proxy->target.port != 0) {
                proxy_hand_over(proxy);
                return false;
        }
        if (used > 0)
                proxy->length = 0; /* A greeting was read. */
        return true;
}

static void proxy_on_event(void *data, uint32_t events) {
        Proxy *proxy = data;

        (void)events;
        while (proxy_read(proxy))
                ;
}

static void proxy_on_time(void *data) {
        Proxy *proxy = data;

        if (proxy->stage == PROXY_HTTP)
                return proxy_send_http(proxy, 408, "The request has not come in time");
        (void)proxy_free(proxy);
}

/* --- the beginning --- */

bool proxy_takes(const Egress *egress, const NetAddress *to, uint16_t port) {
        const NetAddress own = { AF_INET, { 198, 18, 0, NET_OWN } };

        return egress->proxy && port == NET_PROXY_PORT && net_address_equal(to, &own);
}

void proxy_accept(Egress *egress, int fd) {
        Proxy *proxy = egress->proxies_count < PROXIES_MAX ? calloc(1, sizeof(*proxy)) : NULL;

        if (!proxy) {
                egress_deny(egress, EGRESS_BUSY, NULL, NULL, 0, NULL);
                fd_close(fd);
                return;
        }
        *proxy = (Proxy){ .egress = egress, .fd = fd };
        if (proxy_watch(proxy, proxy_on_event, PROXY_TIME) < 0)
                (void)proxy_free(proxy);
}

/* --- the result of the request --- */

const Authority *proxy_target(const Proxy *proxy) {
        return &proxy->target;
}

int proxy_open(const Proxy *proxy, int fd, uint8_t **ret, size_t *ret_length, uint64_t *ret_body) {
        static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
        uint8_t reply[SOCKS_REPLY_MAX];

        *ret = NULL;
        *ret_length = 0;
        *ret_body = proxy->http.body;
        if (proxy->stage == PROXY_SOCKS_REQUEST)
                return proxy_send(fd, reply, socks_reply(SOCKS_SUCCEEDED, reply));
        if (proxy->http.kind == HTTP_PROXY_CONNECT)
                return proxy_send(fd, established, sizeof(established) - 1);
        *ret = malloc(proxy->http.length + HTTP_PROXY_GROWTH);
        if (!*ret)
                return -ENOMEM;
        *ret_length = http_proxy_write(proxy->data, &proxy->http, *ret);
        return 0;
}

/* Writes why the target was not reached. */
static void proxy_write_reason(const EgressEvent *event, char ret[PROXY_LINE]) {
        const NetDenial denial = { .event = *event, .count = 1 };
        char peer[NET_PEER_TEXT], rule[NET_PEER_TEXT], reason[NET_REASON_TEXT];
        const bool granted = net_denial_rule(&denial, rule);

        net_denial_peer(&denial, peer);
        net_denial_reason(&denial, reason);
        if (event->type == EGRESS_FAILED && event->reason == EGRESS_UNREACHED)
                (void)snprintf(ret, PROXY_LINE, "Cannot reach %s: %s", peer,
                               strerror((int)event->errnum));
        else if (event->type == EGRESS_FAILED)
                (void)snprintf(ret, PROXY_LINE, "Cannot reach %s: %s", peer, reason);
        else
                (void)snprintf(ret, PROXY_LINE, "The policy refuses %s: %s%s%s", peer, reason,
                               granted ? "; to allow it: --net " : "", granted ? rule : "");
        for (char *p = ret; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = '?';
}

static unsigned proxy_status(const EgressEvent *event) {
        if (event->type == EGRESS_DENIED)
                return event->reason == EGRESS_BUSY ? 503 : 403;
        return event->errnum == ETIMEDOUT ? 504 : 502;
}

void proxy_refuse(Proxy *proxy, int fd, const EgressEvent *event) {
        char line[PROXY_LINE];

        proxy->fd = fd;
        if (proxy->stage == PROXY_SOCKS_REQUEST)
                return proxy_send_socks(proxy, event->type == EGRESS_DENIED
                                                       ? SOCKS_NOT_ALLOWED
                                                       : socks_code((int)event->errnum));
        proxy_write_reason(event, line);
        proxy_send_http(proxy, proxy_status(event), line);
}

void proxy_close(Egress *egress, int fd) {
        Proxy *proxy = calloc(1, sizeof(*proxy));

        if (!proxy) {
                fd_close(fd);
                return;
        }
        *proxy = (Proxy){ .egress = egress, .fd = fd };
        proxy_linger(proxy);
}
