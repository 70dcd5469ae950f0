/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/serving.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/list.h"
#include "egress/connection.h"
#include "wire/socket-address.h"

typedef struct Listener {
        struct Listener *next;
        Egress *egress;
        ListenerPlan at;
        int fd;
        unsigned turn; /* Connections to accept; see turn_next(). */
        LoopWatch *watch;
} Listener;

static void listener_on_event(void *data, uint32_t events) {
        Listener *listener = data;
        unsigned done;

        (void)events;
        for (done = 0; done < listener->turn; done++) {
                Syn syn = { 0 };
                int fd = egress_accept(listener->egress, listener->fd, &syn.from, &syn.from_port);

                if (fd < 0)
                        break;
                if (socket_address_own(fd, &syn.to, &syn.to_port) < 0)
                        fd = fd_close(fd);
                else
                        connection_accept(listener->egress, fd, &syn);
        }
        listener->turn = turn_next(listener->turn, done);
}

int serving_add(Egress *egress, const ListenerPlan *at, int fd, Error *reterr) {
        Listener *listener = calloc(1, sizeof(*listener));
        int r = listener ? 0 : error_oom(reterr);

        if (r == 0) {
                *listener = (Listener){ .egress = egress, .at = *at, .fd = fd, .turn = 1 };
                r = loop_watch(egress->loop, fd, EPOLLIN, listener_on_event, listener,
                               &listener->watch, reterr);
        }
        if (r < 0) {
                fd_close(fd);
                free(listener);
                return r;
        }
        list_push(&egress->listeners, listener);
        return 0;
}

static bool listener_takes_all(const ListenerPlan *at) {
        const NetAddress any = { .family = at->address.family };

        return net_address_equal(&at->address, &any);
}

bool serving_has(const Egress *egress, const ListenerPlan *at) {
        for (const Listener *l = egress->listeners; l; l = l->next)
                if (l->at.port == at->port && l->at.address.family == at->address.family &&
                    (listener_takes_all(&l->at) || net_address_equal(&l->at.address, &at->address)))
                        return true;
        return false;
}

static void listener_end(Egress *egress, Listener *listener) {
        listener->turn = TURN_MAX;
        listener_on_event(listener, 0);
        (void)list_remove(&egress->listeners, listener);
        listener->watch = loop_unwatch(listener->watch);
        fd_close(listener->fd);
        free(listener);
}

void serving_prune(Egress *egress, bool (*needed)(const Egress *egress, const ListenerPlan *at)) {
        list_each_safe(l, egress->listeners) {
                if (!needed(egress, &l->at))
                        listener_end(egress, l);
        }
}

int serving_make_way(Egress *egress, const ListenerPlan *any, ListenerPlan **ret) {
        ListenerPlan *places = NULL;
        int count = 0;

        if (!listener_takes_all(any))
                return 0;
        for (const Listener *l = egress->listeners; l; l = l->next)
                count++;
        if (count == 0)
                return 0;
        places = calloc((size_t)count, sizeof(*places));
        if (!places)
                return -ENOMEM;
        count = 0;
        list_each_safe(l, egress->listeners) {
                if (l->at.port != any->port || l->at.address.family != any->address.family)
                        continue;
                places[count++] = l->at;
                listener_end(egress, l);
        }
        *ret = places;
        return count;
}
