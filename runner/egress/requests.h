/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of holt-egress to the maker while it serves. The maker replies in their order. Only a
 * few are sent at once, so that no process ever waits until the other reads. If the maker is gone,
 * holt-egress ends. */
#pragma once

#include "egress/egress.h"
#include "maker/maker.h"

/* Gets the answer: fd, which it owns, or FD_NONE and a positive errno. */
typedef void (*RequestFn)(void *data, int fd, int errnum);

/* Begins to watch the maker. Call it after the maker has set up the network. Returns 0 or a
 * negative errno. */
int requests_new(Egress *egress, Error *reterr);
/* Calls fn once, later. Returns 0, -ENOMEM, or -EPIPE if the maker has gone. */
int request_send(Egress *egress, const MakerRequest *request, RequestFn fn, void *data);
/* Forgets the requests with this data. */
void request_forget(const Egress *egress, const void *data);
