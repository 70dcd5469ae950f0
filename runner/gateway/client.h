/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of programs.
 *
 * libmicrohttpd does not always notice the end of a connection: not while the connection is
 * suspended, and not if the end has come together with bytes that it has read. Such a connection
 * would count until its timeout.
 *
 * The number of connections has a limit. Above CLIENTS_MAX, the gateway drops connections whose
 * program is too slow: it has not sent the head of a request or the next bytes of a body, or has
 * not read a response. The slowest goes first. A connection whose request waits for the upstream
 * stays. At CLIENTS_LIMIT, new connections wait in the kernel. */
#pragma once

#include "gateway/gateway.h"

/* Connections of each listener. */
enum {
        CLIENTS_MAX = 256,
        CLIENTS_LIMIT = CLIENTS_MAX + 32,
};

/* Makes the timer of gateway->room_timer. */
int clients_new(Gateway *gateway, Error *reterr);

/* Callback of libmicrohttpd for each new connection and for its end. data: the Gateway. */
void client_on_connection(void *data, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code);
/* Watches again, for the next request of a connection that may have ended. */
void client_watch(struct MHD_Connection *connection);
/* Notes that the gateway waits for the program: within a request and its response, or before. */
void client_waits(struct MHD_Connection *connection, bool within);
/* Notes that the gateway does not wait for the program. */
void client_works(struct MHD_Connection *connection);
/* Leaves the connection to somebody else. */
void client_unwatch(struct MHD_Connection *connection);
