/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/server.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/epoll.h>

#include "gateway/client.h"
#include "gateway/exchange.h"

enum {
        CONNECTION_MEMORY = 256
                            << 10, /* Bytes. Half of them receive a head, or pieces of a body. */
        HEAD_TIME = 300,           /* Seconds for which a connection may be silent. */
        TURNS_MAX = 64,
        IDLE_TURNS = 2,      /* Turns without a call after which a daemon waits. */
        IDLE_TIME = 50,      /* Milliseconds that it waits then, unless bytes come. */
        REST_TIME = 1000000, /* Microseconds without a request until memory is given back. */
};

#define TIMEOUT_NONE UINT64_MAX

/* Returns whether a daemon must run before its time, and lowers *timeout (ms) to the time. */
static bool server_is_due(Gateway *gateway, MHD_UNSIGNED_LONG_LONG *timeout) {
        for (size_t i = 0; i < LISTENER_MAX; i++) {
                MHD_UNSIGNED_LONG_LONG left;

                if (gateway->daemons[i] && MHD_get_timeout(gateway->daemons[i], &left) == MHD_YES &&
                    left < *timeout)
                        *timeout = left;
        }
        return *timeout == 0;
}

static void server_run(Gateway *gateway) {
        for (size_t i = 0; i < LISTENER_MAX; i++)
                if (gateway->daemons[i])
                        (void)MHD_run(gateway->daemons[i]);
}

/* libmicrohttpd wants to run again at once while a TLS handshake is incomplete, until more bytes
 * come or the connection ends. So a daemon that has made no call waits. */
void server_turn(Gateway *gateway) {
        MHD_UNSIGNED_LONG_LONG timeout = TIMEOUT_NONE;
        unsigned idle = 0;

        if (gateway->turning) /* libmicrohttpd has called, and goes on by itself. */
                return;
        gateway->turning = true;
        for (int i = 0; i < TURNS_MAX; i++) {
                const bool resumed = gateway->resumed;
                const uint64_t calls = gateway->calls;

                gateway->resumed = false;
                timeout = TIMEOUT_NONE;
                if (!server_is_due(gateway, &timeout) && !resumed)
                        break;
                if (!resumed && idle == IDLE_TURNS) {
                        timeout = IDLE_TIME;
                        break;
                }
                server_run(gateway);
                idle = gateway->calls == calls ? idle + 1 : 0;
        }
        gateway->turning = false;
        if (gateway->resumed)
                loop_timer_set(gateway->turn_timer, time_now_usec());
        else if (timeout != TIMEOUT_NONE)
                loop_timer_set(gateway->turn_timer, time_now_usec() + timeout * 1000);
}

static void server_on_time(void *data) {
        Gateway *gateway = data;

        gateway->resumed = true;
        server_turn(gateway);
}

static void server_on_rest(void *data) {
        const Gateway *gateway = data;

        if (!gateway->exchanges)
                (void)malloc_trim(0);
}

void server_rest(Gateway *gateway) {
        loop_timer_set(gateway->rest_timer, time_now_usec() + REST_TIME);
}

static void server_on_event(void *data, uint32_t events) {
        (void)events;
        server_on_time(data);
}

/* The target stays as it was sent: a decoded path would be another one. */
static size_t server_keep_escapes(void *data, struct MHD_Connection *connection, char *text) {
        (void)data;
        (void)connection;
        return strlen(text);
}

static int server_listen(Gateway *gateway, Listener listener, Error *reterr) {
        const struct MHD_OptionItem tls[] = {
                { MHD_OPTION_HTTPS_MEM_KEY, 0, gateway->tls_key },
                { MHD_OPTION_HTTPS_MEM_CERT, 0, gateway->tls_certificate },
                { MHD_OPTION_END, 0, NULL },
        };
        const bool is_tls = listener == LISTENER_TLS;
        const union MHD_DaemonInfo *info;
        struct MHD_Daemon *daemon = MHD_start_daemon(
                MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
                        (is_tls ? MHD_USE_TLS : MHD_ALLOW_UPGRADE),
                0, NULL, NULL, exchange_on_request, gateway, MHD_OPTION_LISTEN_SOCKET,
                gateway->listen_fds[listener], MHD_OPTION_URI_LOG_CALLBACK, exchange_on_target,
                gateway, MHD_OPTION_NOTIFY_COMPLETED, exchange_on_end, gateway,
                MHD_OPTION_NOTIFY_CONNECTION, client_on_connection, gateway,
                MHD_OPTION_UNESCAPE_CALLBACK, server_keep_escapes, NULL,
                MHD_OPTION_CONNECTION_LIMIT, (unsigned)CLIENTS_LIMIT,
                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
                MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HEAD_TIME, MHD_OPTION_STRICT_FOR_CLIENT, 1,
                MHD_OPTION_ARRAY, is_tls ? tls : tls + ELEMENTSOF(tls) - 1, MHD_OPTION_END);

        gateway->daemons[listener] = daemon;
        info = daemon ? MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
        if (!info)
                return error_set(reterr, ERROR_SETUP, errno, "cannot serve HTTP");
        return loop_watch(gateway->loop, info->epoll_fd, EPOLLIN, server_on_event, gateway,
                          &gateway->daemon_watches[listener], reterr);
}

int server_new(Gateway *gateway, Error *reterr) {
        int r = loop_timer_new(gateway->loop, server_on_time, gateway, &gateway->turn_timer,
                               reterr);

        if (r == 0)
                r = loop_timer_new(gateway->loop, server_on_rest, gateway, &gateway->rest_timer,
                                   reterr);
        if (r == 0)
                r = clients_new(gateway, reterr);
        for (Listener i = 0; r == 0 && i < LISTENER_MAX; i++)
                if (gateway->listen_fds[i] >= 0)
                        r = server_listen(gateway, i, reterr);
        return r;
}
