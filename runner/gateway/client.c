/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/client.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/list.h"
#include "base/time.h"
#include "gateway/exchange.h"
#include "gateway/server.h"

enum {
        /* Microseconds that a program has in any case. */
        HEAD_PATIENCE = 250000,   /* to send the head of a request */
        BODY_PATIENCE = 10000000, /* to send the next bytes of a body, or to read them */
        LOOK_PERIOD = 250000,     /* Microseconds between two looks for slow programs. */
};

#define DUE_NEVER UINT64_MAX

/* A connection of a program. */
typedef struct Client {
        struct Client *next;
        Gateway *gateway;
        Listener listener;
        struct MHD_Connection *connection;
        LoopWatch *watch; /* NULL after the end was seen */
        uint64_t due;     /* usec: it can be dropped from then on */
        bool dropped;
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
        if (!exchange_leave(gateway, client->connection, "the program closed the connection")) {
                MHD_suspend_connection(client->connection);
                MHD_resume_connection(client->connection);
                gateway->resumed = true;
        }
        server_turn(gateway);
}

static int client_socket(struct MHD_Connection *connection) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(
                connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        return info ? info->connect_fd : -1;
}

void client_watch(struct MHD_Connection *connection) {
        Client *client = client_get(connection);

        if (client && !client->watch)
                (void)loop_watch(client->gateway->loop, client_socket(connection), EPOLLRDHUP,
                                 client_on_closed, client, &client->watch, NULL);
}

void client_unwatch(struct MHD_Connection *connection) {
        Client *client = client_get(connection);

        if (client)
                client->watch = loop_unwatch(client->watch);
}

/* --- room for others --- */

/* libmicrohttpd reads the end of the connection, because client_on_closed() sees it, too. */
static void client_drop(Client *client) {
        client->dropped = true;
        (void)exchange_leave(client->gateway, client->connection,
                             "the program was too slow while other connections waited");
        (void)shutdown(client_socket(client->connection), SHUT_RDWR);
}

/* Returns the client that can be dropped first, and the number of the others. */
static Client *listener_find_slowest(const Gateway *gateway, Listener listener, unsigned *ret) {
        Client *slowest = NULL;

        *ret = 0;
        for (Client *client = gateway->clients; client; client = client->next) {
                if (client->listener != listener || client->dropped)
                        continue;
                *ret += slowest != NULL;
                if (!slowest || client->due < slowest->due)
                        slowest = client;
        }
        return slowest;
}

static void listener_make_room(Gateway *gateway, Listener listener) {
        const uint64_t now = time_now_usec();
        unsigned others;
        Client *slowest = listener_find_slowest(gateway, listener, &others);

        if (others < CLIENTS_MAX)
                return;
        if (slowest->due <= now)
                client_drop(slowest);
        loop_timer_set(gateway->room_timer, now + LOOK_PERIOD);
}

static void clients_on_time(void *data) {
        for (Listener i = 0; i < LISTENER_MAX; i++)
                listener_make_room(data, i);
}

int clients_new(Gateway *gateway, Error *reterr) {
        return loop_timer_new(gateway->loop, clients_on_time, gateway, &gateway->room_timer,
                              reterr);
}

void client_waits(struct MHD_Connection *connection, bool within) {
        Client *client = client_get(connection);

        if (!client)
                return;
        client->due = time_now_usec() + (within ? BODY_PATIENCE : HEAD_PATIENCE);
        if (!within)
                listener_make_room(client->gateway, client->listener);
}

void client_works(struct MHD_Connection *connection) {
        Client *client = client_get(connection);

        if (client)
                client->due = DUE_NEVER;
}

/* --- connections --- */

static void client_free(Client *client) {
        if (!client)
                return;
        /* Below the limit, libmicrohttpd listens again when it runs. */
        client->gateway->resumed = true;
        (void)list_remove(&client->gateway->clients, client);
        (void)loop_unwatch(client->watch);
        free(client);
}

void client_on_connection(void *data, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code) {
        Client *client = *context;

        if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
                client_free(client);
                *context = NULL;
                return;
        }
        client = calloc(1, sizeof(*client));
        if (!client)
                return;
        *client = (Client){ .gateway = data,
                            .listener = judge_is_tls(connection) ? LISTENER_TLS : LISTENER_URL,
                            .connection = connection };
        *context = client;
        list_push(&client->gateway->clients, client);
        client_watch(connection);
        client_waits(connection, false);
}
