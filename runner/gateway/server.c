/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/server.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "gateway/exchange.h"

enum {
        CONNECTIONS_MAX = 256,
        CONNECTION_MEMORY = 64 << 10, /* Bytes of one request's head. */
        HEAD_TIME = 300,              /* Seconds for which a connection may be silent. */
        TURNS_MAX = 64,
};

void server_turn(Gateway *gateway) {
        MHD_UNSIGNED_LONG_LONG timeout = 0;

        if (gateway->turning) /* libmicrohttpd has called, and goes on by itself. */
                return;
        gateway->turning = true;
        for (int i = 0; i < TURNS_MAX; i++) {
                const bool resumed = gateway->resumed;

                gateway->resumed = false;
                if (!resumed &&
                    (MHD_get_timeout(gateway->daemon, &timeout) != MHD_YES || timeout > 0))
                        break;
                (void)MHD_run(gateway->daemon);
        }
        gateway->turning = false;
        if (gateway->resumed)
                loop_timer_set(gateway->turn_timer, time_now_usec());
        else if (MHD_get_timeout(gateway->daemon, &timeout) == MHD_YES)
                loop_timer_set(gateway->turn_timer, time_now_usec() + timeout * 1000);
}

static void server_on_time(void *data) {
        Gateway *gateway = data;

        gateway->resumed = true;
        server_turn(gateway);
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

int server_new(Gateway *gateway, Error *reterr) {
        const union MHD_DaemonInfo *info;
        int r = loop_timer_new(gateway->loop, server_on_time, gateway, &gateway->turn_timer,
                               reterr);

        if (r < 0)
                return r;
        gateway->daemon = MHD_start_daemon(
                MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, exchange_on_request,
                gateway, MHD_OPTION_LISTEN_SOCKET, gateway->listen_fd, MHD_OPTION_URI_LOG_CALLBACK,
                exchange_on_target, gateway, MHD_OPTION_NOTIFY_COMPLETED, exchange_on_end, gateway,
                MHD_OPTION_UNESCAPE_CALLBACK, server_keep_escapes, NULL,
                MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
                MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HEAD_TIME, MHD_OPTION_STRICT_FOR_CLIENT, 1,
                MHD_OPTION_END);
        info = gateway->daemon ? MHD_get_daemon_info(gateway->daemon, MHD_DAEMON_INFO_EPOLL_FD)
                               : NULL;
        if (!info)
                return error_set(reterr, ERROR_SETUP, errno, "cannot serve HTTP");
        return loop_watch(gateway->loop, info->epoll_fd, EPOLLIN, server_on_event, gateway,
                          &gateway->daemon_watch, reterr);
}
