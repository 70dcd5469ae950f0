/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds what waits for a slow keeper. On a busy machine, a client may answer tool calls faster
 * than a keeper reads the replies. They wait in holt serve, up to a limit. Before that limit is
 * reached, holt serve stops reading, so that further replies wait in the client. */
#include "base/time.h"
#include "base/wait.h"
#include "serve/proxy-internal.h"

/* Limits of the bytes that wait for a keeper. Above the first one, the keeper's client is not read;
 * below the second one, it is read again. The time is in usec: until then, some of the bytes must
 * leave. */
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

/* If a keeper takes nothing, it may itself wait for this client to read. So the client is read
 * again. */
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
