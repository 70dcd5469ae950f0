/* SPDX-License-Identifier: Apache-2.0 */
/* A client may answer the calls of tools faster than a keeper on a busy machine reads the answers.
 * They wait in holt serve up to a limit; before that is reached the client is not read any more,
 * and they wait in the client. */
#include "base/time.h"
#include "base/wait.h"
#include "serve/proxy-internal.h"

/* Bytes that wait for a keeper, from which on and down to which its client is not read; and usec
 * in which some of them have to leave. */
enum {
        HOLD_QUEUE = RPC_CLIENT_QUEUE_MAX / 2,
        HOLD_UNTIL = RPC_CLIENT_QUEUE_MAX / 4,
        HOLD_TIME = HOLT_WAIT(5000000),
};

/* A client may have several upstreams. */
static void set_hold(Upstream *upstream, bool holds) {
        bool any = false;

        upstream->holds = holds;
        for (const Upstream *u = upstream->proxy->upstreams; u; u = u->next)
                any |= u->holds && u->client == upstream->client;
        rpc_hold(upstream->client, any);
}

/* Of what it has sent on its way to the keeper. */
void proxy_hold_if_slow(Upstream *upstream) {
        const size_t queued = rpc_client_queued(upstream->keeper);

        if (upstream->holds || upstream->let_go || queued < HOLD_QUEUE)
                return;
        upstream->queued = queued;
        set_hold(upstream, true);
        loop_timer_set(upstream->proxy->timer, time_now_usec() + HOLD_TIME);
}

void proxy_go_on(Upstream *upstream) {
        if (rpc_client_queued(upstream->keeper) > HOLD_UNTIL)
                return;
        upstream->let_go = false;
        if (upstream->holds)
                set_hold(upstream, false);
}

void proxy_let_go(Upstream *upstream) {
        if (upstream->holds)
                set_hold(upstream, false);
}

/* A keeper that takes nothing may wait for this client, which would read if it were read: whoever
 * holds it lets it go. */
void proxy_on_hold_time(void *data) {
        Proxy *proxy = data;
        bool more = false;

        for (Upstream *u = proxy->upstreams; u; u = u->next) {
                const size_t queued = u->holds ? rpc_client_queued(u->keeper) : 0;

                if (u->holds && queued >= u->queued) {
                        u->let_go = true;
                        set_hold(u, false);
                }
                u->queued = queued;
                more |= u->holds;
        }
        if (more)
                loop_timer_set(proxy->timer, time_now_usec() + HOLD_TIME);
}
