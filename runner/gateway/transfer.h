/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the request of an exchange to the upstream, and reads the response, by libcurl. */
#pragma once

#include "gateway/exchange.h"

/* Makes the shared state of all transfers. Returns 0 or a negative errno. */
int transfers_new(Gateway *gateway, Error *reterr);

/* Starts the transfer. The credentials of the route are there. If that fails, sets e->verdict. */
void transfer_start(Exchange *e);
/* Goes on after bytes have come or have left, or the request is complete. */
void transfer_continue(Exchange *e);
/* Ends the transfer, if it runs. */
void transfer_close(Exchange *e);

/* --- transfer-head.c --- */

/* Adds the headers of the request: those of the program without the token, and those of the route.
 * Returns 0 or -ENOMEM. */
int transfer_add_headers(Exchange *e);
/* Makes the URL without parameters. Owned by the caller; NULL without memory. */
char *transfer_bare_url(const Exchange *e);
/* Makes the URL, with the parameters of the route. Owned by the caller; NULL without memory. */
char *transfer_url(const Exchange *e);
/* Takes one line of the response's head. Returns 0, -ENOMEM, or -EPROTO for a response that cannot
 * be passed on. */
int transfer_take_header(Exchange *e, const char *line, size_t length);

/* --- transfer-location.c --- */

/* Takes the header of a redirect. One within the upstream leads to the route again, so that the
 * program can follow it. Refuses one that would lead the program to another route, with a request
 * of the upstream's choice. Returns like transfer_take_header(). */
int transfer_take_location(Exchange *e, const char *line);

/* --- transfer-cookie.c --- */

/* Takes the header Set-Cookie, and changes it so that only requests of the same route get the
 * cookie. Returns 0 or -ENOMEM. */
int transfer_take_cookie(Exchange *e, const char *line);
