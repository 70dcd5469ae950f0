/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/upstream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/base64.h"
#include "wire/upstream-wire.h"
#include "policy/net/upstream.h"

enum { UPSTREAM_TIME = 130000000 }; /* usec; a proxy gives up earlier. */

struct Upstream {
        NetUpstream url;
        char *credentials; /* In base64; "" if there are none. */
};

struct UpstreamCall {
        int fd; /* Borrowed. */
        LoopWatch *watch;
        LoopTimer *timer;
        UpstreamFn fn;
        void *data;
        size_t request_length, request_sent;
        size_t reply_length, reply_seen;
        char request[UPSTREAM_REQUEST_MAX];
        uint8_t reply[UPSTREAM_REPLY_MAX];
};

int upstream_set(Egress *egress, const char *value, Error *reterr) {
        const char *why = "", *login;

        egress->upstream = calloc(1, sizeof(*egress->upstream));
        if (!egress->upstream)
                return error_oom(reterr);
        if (net_upstream_parse(value, &egress->upstream->url, &why) < 0)
                return error_set(reterr, ERROR_PROTOCOL, 0, "the URL of network.upstream %s", why);
        login = egress->upstream->url.login;
        egress->upstream->credentials = base64_encode(login, strlen(login));
        return egress->upstream->credentials ? 0 : error_oom(reterr);
}

void upstream_resolve(Egress *egress, uint16_t *ret_port, NameFn fn, void *data) {
        const NetUpstream *url = &egress->upstream->url;
        NameResult result = { .items = { url->address }, .count = 1 };

        *ret_port = url->port;
        if (url->address.family != 0)
                return fn(data, &result);
        names_resolve_host(egress->names, url->name, fn, data);
}

void upstream_forget(const Egress *egress, const void *data) {
        names_forget_host(egress->names, data);
}

/* --- one call --- */

UpstreamCall *upstream_end(UpstreamCall *call) {
        if (!call)
                return NULL;
        call->watch = loop_unwatch(call->watch);
        call->timer = loop_timer_free(call->timer);
        explicit_bzero(call->request,
                       sizeof(call->request)); /* The request may contain the password. */
        free(call);
        return NULL;
}

static void upstream_result(UpstreamCall *call, EgressReason reason, int errnum) {
        UpstreamFn fn = call->fn;
        void *data = call->data;

        (void)upstream_end(call);
        fn(data, reason, errnum);
}

/* Returns whether the whole request is sent. */
static bool upstream_send(UpstreamCall *call) {
        ssize_t n = 0;

        if (call->request_sent < call->request_length)
                n = send(call->fd, call->request + call->request_sent,
                         call->request_length - call->request_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
                call->request_sent += (size_t)n;
        return call->request_sent == call->request_length;
}

static void upstream_judge(UpstreamCall *call, unsigned status) {
        if (status >= 200 && status < 300)
                return upstream_result(call, 0, 0);
        upstream_result(call, EGRESS_UPSTREAM_REFUSED, upstream_errno(status));
}

/* Takes the head of the reply from the socket, and leaves what follows. Returns whether there may
 * be more to read. */
static bool upstream_receive(UpstreamCall *call) {
        const size_t had = call->reply_length;
        unsigned status = 0;
        ssize_t n = recv(call->fd, call->reply + had, sizeof(call->reply) - had,
                         MSG_PEEK | MSG_DONTWAIT);
        int r = -EBADMSG;

        if (n < 0 && errno == EAGAIN)
                return false;
        if (n <= 0) {
                upstream_result(call, EGRESS_NO_UPSTREAM, n < 0 ? errno : ECONNRESET);
                return false;
        }
        r = upstream_read(call->reply, had + (size_t)n, &call->reply_seen, &status);
        call->reply_length = r > 0 ? call->reply_seen : had + (size_t)n;
        n = recv(call->fd, call->reply + had, call->reply_length - had, MSG_DONTWAIT);
        if (r < 0 || n != (ssize_t)(call->reply_length - had)) {
                upstream_result(call, EGRESS_UPSTREAM_REFUSED, EPROTO);
                return false;
        }
        if (r > 0)
                upstream_judge(call, status);
        return r == 0;
}

static void upstream_on_event(void *data, uint32_t events) {
        UpstreamCall *call = data;

        if (upstream_send(call) && events & EPOLLOUT)
                loop_watch_set(call->watch, EPOLLIN);
        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                while (upstream_receive(call))
                        ;
}

static void upstream_on_time(void *data) {
        upstream_result(data, EGRESS_NO_UPSTREAM, ETIMEDOUT);
}

UpstreamCall *upstream_call(const Egress *egress, int fd, const char *name,
                            const NetAddress *address, uint16_t port, UpstreamFn fn, void *data) {
        UpstreamCall *call = calloc(1, sizeof(*call));
        char text[NET_ADDRESS_TEXT];

        if (!call)
                return NULL;
        call->fd = fd;
        call->fn = fn;
        call->data = data;
        call->request_length = upstream_write(name ? name : net_address_text(address, text), port,
                                              egress->upstream->credentials, call->request);
        if (loop_watch(egress->loop, fd, EPOLLIN | EPOLLOUT, upstream_on_event, call, &call->watch,
                       NULL) < 0 ||
            loop_timer_new(egress->loop, upstream_on_time, call, &call->timer, NULL) < 0)
                return upstream_end(call);
        loop_timer_set(call->timer, time_now_usec() + UPSTREAM_TIME);
        return call;
}
