/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a program's connection, which libmicrohttpd does not always notice: not while the
 * connection is suspended, and not if the end has come together with bytes that it has read. Such
 * a connection would count until its timeout. */
#pragma once

#include "gateway/gateway.h"

/* Callback of libmicrohttpd for each new connection and for its end. data: the Gateway. */
void client_on_connection(void *data, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code);
/* Watches again, for the next request of a connection that may have ended. */
void client_watch(struct MHD_Connection *connection);
/* Leaves the connection to somebody else. */
void client_unwatch(struct MHD_Connection *connection);
