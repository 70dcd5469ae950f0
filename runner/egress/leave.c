/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation. holt closes its socket once all processes of the sandbox have ended. Outside
 * a sandbox, the kernel would still send what a program has written before it closed its connection
 * and ended. So holt-egress passes these bytes on, and then ends. A server that does not take them
 * in time gets a reset, because a normal end would look like the end of the data. New connections
 * are refused. */
#include <errno.h>

#include "base/wait.h"
#include "egress/connection-internal.h"

enum { LEAVE_TIME = HOLT_WAIT(3000000) }; /* usec. network.c waits longer. */

static void leave_late(void *data) {
        Egress *egress = data;

        while (egress->connections)
                connection_end(egress->connections, ETIMEDOUT);
}

/* Returns a connection that does not know yet that the sandbox has ended. */
static Connection *leave_next(const Egress *egress) {
        Connection *c = egress->connections;

        while (c && c->leaves)
                c = c->next;
        return c;
}

void egress_leave(Egress *egress) {
        Connection *c;
        LoopTimer *timer;

        if (egress->leaves)
                return;
        egress->leaves = true;
        /* The end of a connection may end others (once_release()). */
        while ((c = leave_next(egress))) {
                c->leaves = true;
                if (c->state < CONNECTION_GREETS)
                        connection_end(c, ECONNRESET);
                else if (c->published)
                        connection_on_server(c, EPOLLIN | EPOLLRDHUP);
                else
                        connection_on_client(c, EPOLLIN | EPOLLRDHUP);
        }
        if (egress->connections_count == 0 ||
            loop_timer_new(egress->loop, leave_late, egress, &timer, NULL) < 0)
                return loop_stop(egress->loop);
        loop_timer_set(timer, time_now_usec() + LEAVE_TIME);
}
