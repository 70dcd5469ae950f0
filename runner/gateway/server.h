/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd in the loop of holt-gateway. */
#pragma once

#include "gateway/gateway.h"

/* Serves requests that come on gateway->listen_fd. Returns 0 or a negative errno. */
int server_new(Gateway *gateway, Error *reterr);
/* Lets connections go on that were resumed. Call it after anything that may have resumed one. */
void server_turn(Gateway *gateway);
/* The last request has ended: gives memory back to the kernel, unless another comes soon. */
void server_rest(Gateway *gateway);
