/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy outside (network.upstream). If the policy names one, holt-egress makes all connections
 * through it, and the proxy resolves the names. */
#pragma once

#include "egress/egress.h"

typedef struct Upstream Upstream;
/* A request to the proxy on one connection. */
typedef struct UpstreamCall UpstreamCall;

/* The setting: a URL. Its password stays in this process, and is never in the maker's memory. */
int upstream_set(Egress *egress, const char *value, Error *reterr);

/* Finds the proxy's addresses and its port, and calls fn once: now or later. */
void upstream_resolve(Egress *egress, uint16_t *ret_port, NameFn fn, void *data);
/* Forgets a call to fn with this data. */
void upstream_forget(const Egress *egress, const void *data);

/* errnum: 0 if the target is connected; otherwise reason is one of EGRESS_UPSTREAM_REFUSED and
 * EGRESS_NO_UPSTREAM. The call is over. */
typedef void (*UpstreamFn)(void *data, EgressReason reason, int errnum);
/* Asks the proxy at the other end of fd for a target: name, or the address if name is NULL. fn is
 * called later. Returns NULL without memory. */
UpstreamCall *upstream_call(const Egress *egress, int fd, const char *name,
                            const NetAddress *address, uint16_t port, UpstreamFn fn, void *data);
/* Ends a call without a result. Accepts NULL. Returns NULL. */
UpstreamCall *upstream_end(UpstreamCall *call);
