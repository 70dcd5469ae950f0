/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/client.h"

#include <stdlib.h>
#include <sys/epoll.h>

#include "gateway/exchange.h"
#include "gateway/server.h"

/* A connection of a program. */
typedef struct Client {
        Gateway *gateway;
        struct MHD_Connection *connection;
        LoopWatch *watch; /* NULL after the end was seen */
} Client;

static Client *client_get(struct MHD_Connection *connection) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(
                connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        return info ? info->socket_context : NULL;
}

/* A resumed connection is read again, so libmicrohttpd sees its end. */
static void client_on_closed(void *data, uint32_t events) {
        Client *client = data;
        Gateway *gateway = client->gateway;

        (void)events;
        client->watch = loop_unwatch(client->watch);
        if (!exchange_leave(gateway, client->connection)) {
                MHD_suspend_connection(client->connection);
                MHD_resume_connection(client->connection);
                gateway->resumed = true;
        }
        server_turn(gateway);
}

void client_watch(struct MHD_Connection *connection) {
        Client *client = client_get(connection);
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(
                connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        if (client && info && !client->watch)
                (void)loop_watch(client->gateway->loop, info->connect_fd, EPOLLRDHUP,
                                 client_on_closed, client, &client->watch, NULL);
}

void client_unwatch(struct MHD_Connection *connection) {
        Client *client = client_get(connection);

        if (client)
                client->watch = loop_unwatch(client->watch);
}

void client_on_connection(void *data, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code) {
        Client *client = *context;

        if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
                if (client)
                        (void)loop_unwatch(client->watch);
                free(client);
                *context = NULL;
                return;
        }
        client = calloc(1, sizeof(*client));
        if (!client)
                return;
        *client = (Client){ .gateway = data, .connection = connection };
        *context = client;
        client_watch(connection);
}
