/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes what holt-gateway reads: requests of programs inside, and responses and frames of
 * services. The first byte says how the input is used.
 *
 * - A request goes through libmicrohttpd on a socket, as in the program. No route allows its path,
 *   so each answer is a refusal, and nothing is sent to a service.
 * - A stream is fed in pieces of any size. The output must have the same length, and no secret.
 * - Frames are fed in pieces. They must leave like frames that are fed at once.
 * - A head of a response for a WebSocket is read like one that has come completely. */
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/exchange.h"
#include "gateway/frames.h"
#include "gateway/tunnel-head.h"
#include "tests/fuzz/harness.h"

static const char first_secret[] = "abcabcabd", second_secret[] = "sk-0123456789";

static void add_secrets(Scrub *scrub) {
        REQUIRE(scrub_add(scrub, first_secret) == 0 && scrub_add(scrub, second_secret) == 0);
}

/* --- requests --- */

enum { RUNS = 16 };

static void send_request(Gateway *gateway, struct MHD_Daemon *daemon, const Input *in) {
        char answer[4096];
        ssize_t n;
        int pair[2];

        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
        REQUIRE(MHD_add_connection(daemon, pair[1], NULL, 0) == MHD_YES);
        (void)send(pair[0], in->at, (size_t)(in->end - in->at), MSG_NOSIGNAL);
        (void)shutdown(pair[0], SHUT_WR);
        for (int i = 0; i < RUNS; i++)
                (void)MHD_run(daemon);
        while ((n = recv(pair[0], answer, sizeof(answer), 0)) > 0)
                REQUIRE(!memmem(answer, (size_t)n, "HTTP/1.1 200", 12));
        (void)close(pair[0]);
        REQUIRE(gateway->routes[0].running == 0);
}

static void on_time(void *data) {
        (void)data;
}

static void check_request(const Input *in) {
        AllowRule allow = { .method = strdup("GET"), .path = strdup("/only") };
        Route route = { .name = strdup("a"),
                        .host = strdup("192.0.2.1"),
                        .address.family = AF_INET,
                        .base = strdup(""),
                        .port = 80,
                        .allow = &allow,
                        .allow_count = 1,
                        .body_max = 1000,
                        .concurrent = 2 };
        Gateway gateway = {
                .control_fd = -1, .token = strdup("t0"), .routes = &route, .routes_count = 1
        };
        struct MHD_Daemon *daemon;

        REQUIRE(loop_new(&gateway.loop, NULL) == 0);
        REQUIRE(loop_timer_new(gateway.loop, on_time, NULL, &gateway.turn_timer, NULL) == 0);
        REQUIRE(loop_timer_new(gateway.loop, on_time, NULL, &gateway.rest_timer, NULL) == 0);
        daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE |
                                          MHD_USE_NO_LISTEN_SOCKET,
                                  0, NULL, NULL, exchange_on_request, &gateway,
                                  MHD_OPTION_URI_LOG_CALLBACK, exchange_on_target, &gateway,
                                  MHD_OPTION_NOTIFY_COMPLETED, exchange_on_end, &gateway,
                                  MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
        REQUIRE(daemon);
        send_request(&gateway, daemon, in);
        MHD_stop_daemon(daemon);
        (void)loop_timer_free(gateway.turn_timer);
        (void)loop_timer_free(gateway.rest_timer);
        (void)loop_free(gateway.loop);
        free(allow.method);
        free(allow.path);
        free(route.name);
        free(route.host);
        free(route.base);
        free(gateway.token);
}

/* --- streams and frames --- */

typedef int Feed(void *state, Scrub *scrub, const char *data, size_t length, bool last,
                 Buffer *ret);

static int feed_stream(void *state, Scrub *scrub, const char *data, size_t length, bool last,
                       Buffer *ret) {
        (void)state;
        return scrub_feed(scrub, data, length, last, ret);
}

static int feed_frames(void *state, Scrub *scrub, const char *data, size_t length, bool last,
                       Buffer *ret) {
        (void)last;
        return frames_feed(state, scrub, data, length, ret);
}

/* Feeds a copy of exact size in pieces of up to `step` bytes. */
static int feed(Feed *fn, void *state, const Input *in, size_t step, Buffer *ret) {
        const size_t size = (size_t)(in->end - in->at);
        Scrub scrub = { 0 };
        size_t at = 0;
        int r = 0;

        add_secrets(&scrub);
        do {
                const size_t n = size - at < step ? size - at : step;
                char *piece = malloc(n + 1);

                REQUIRE(piece);
                memcpy(piece, in->at + at, n);
                at += n;
                r = fn(state, &scrub, piece, n, at == size, ret);
                free(piece);
        } while (r == 0 && at < size);
        scrub_clear(&scrub);
        return r;
}

static void check_stream(Input *in) {
        const size_t step = 1 + take_byte(in) % 24;
        Buffer out = { 0 };

        REQUIRE(feed(feed_stream, NULL, in, step, &out) == 0);
        REQUIRE(out.length == (size_t)(in->end - in->at));
        if (out.length > 0) {
                REQUIRE(!memmem(out.data + out.start, out.length, first_secret,
                                strlen(first_secret)));
                REQUIRE(!memmem(out.data + out.start, out.length, second_secret,
                                strlen(second_secret)));
        }
        buffer_clear(&out);
}

static void check_frames(Input *in) {
        const size_t step = 1 + take_byte(in) % 24;
        Buffer whole = { 0 }, parts = { 0 };
        FrameReader one = { 0 }, other = { 0 };
        const int r = feed(feed_frames, &one, in, SIZE_MAX, &whole);

        REQUIRE(feed(feed_frames, &other, in, step, &parts) == r);
        if (r == 0) {
                REQUIRE(whole.length == parts.length);
                REQUIRE(whole.length == 0 || memcmp(whole.data + whole.start,
                                                    parts.data + parts.start, whole.length) == 0);
                REQUIRE(one.left == other.left && one.head_length == other.head_length);
        }
        buffer_clear(&whole);
        buffer_clear(&parts);
}

/* --- heads of responses --- */

static void check_head(const Input *in) {
        const size_t size = (size_t)(in->end - in->at);
        char base[] = "/v1", name[] = "a", host[] = "a.example";
        Route route = { .name = name, .host = host, .base = base, .port = 80 };
        Exchange e = { .route = &route, .rest = "/x" };
        char *copy = malloc(size + 1);
        ssize_t n;

        REQUIRE(copy);
        memcpy(copy, in->at, size);
        add_secrets(&e.scrub);
        n = tunnel_head_length(copy, size);
        REQUIRE(n <= (ssize_t)size && n <= TUNNEL_HEAD_MAX);
        if (n > 0 && tunnel_take_head(&e, copy, (size_t)n) == 0) {
                REQUIRE(e.status >= 100 && e.status <= 599);
                for (size_t i = 0; i < e.answer.count; i++)
                        REQUIRE(strchr(e.answer.items[i], ':') &&
                                !strpbrk(e.answer.items[i], "\r\n"));
        }
        free(copy);
        strlist_clear(&e.answer);
        scrub_clear(&e.scrub);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Input in = { data, data + size };

        switch (take_byte(&in) % 4) {
        case 0:
                check_request(&in);
                break;
        case 1:
                check_stream(&in);
                break;
        case 2:
                check_frames(&in);
                break;
        default:
                check_head(&in);
        }
        return 0;
}
