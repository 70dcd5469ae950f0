/* SPDX-License-Identifier: Apache-2.0 */
#include "network/published.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

void net_published_clear(NetPublished *published) {
        free(published->items);
        *published = (NetPublished){ 0 };
}

NetPort net_published_port(const EgressEvent *event) {
        NetPort port = { .host = event->port, .inside = event->inside };

        port.address.family = event->family;
        memcpy(port.address.bytes, event->address, sizeof(port.address.bytes));
        return port;
}

static int published_add(NetPublished *published, const NetPort *port) {
        NetPort *grown = reallocarray(published->items, published->count + 1, sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        published->items = grown;
        published->items[published->count++] = *port;
        return 0;
}

static void published_remove(NetPublished *published, const NetPort *port) {
        size_t i = 0;

        while (i < published->count && !net_port_equal(&published->items[i], port))
                i++;
        if (i == published->count)
                return;
        published->count--;
        memmove(published->items + i, published->items + i + 1,
                (published->count - i) * sizeof(*published->items));
}

int net_published_note(NetPublished *published, const EgressEvent *event) {
        const NetPort port = net_published_port(event);

        if (event->errnum)
                return 0;
        if (event->type == EGRESS_PUBLISHED)
                return published_add(published, &port);
        if (event->type == EGRESS_UNPUBLISHED)
                published_remove(published, &port);
        return 0;
}

static void published_cure(const EgressEvent *event, const char *automatic, Error *reterr) {
        switch (event->errnum) {
        case EADDRINUSE:
                (void)error_cure(reterr, 0,
                                 "Another program has the port, or another sandbox. Choose another "
                                 "one, or let the kernel choose: %s",
                                 automatic);
                break;
        case EACCES:
                (void)error_cure(reterr, 0,
                                 "Only privileged programs may listen below the port in "
                                 "/proc/sys/net/ipv4/ip_unprivileged_port_start. Choose a higher "
                                 "port, or let the kernel choose: %s",
                                 automatic);
                break;
        case EADDRNOTAVAIL:
                (void)error_cure(reterr, 0,
                                 "This host has no such address; ip address lists its "
                                 "addresses.");
                break;
        default:
                break;
        }
}

int net_published_refuse(const EgressEvent *event, const char *automatic, Error *reterr) {
        const NetPort port = net_published_port(event);
        char text[NET_PORT_TEXT];
        int r;

        if (event->errnum == ENOSPC)
                return error_set(reterr, ERROR_LIMIT, 0,
                                 "cannot publish port %u: too many ports are published",
                                 port.inside);
        r = error_set(reterr, event->errnum == EADDRINUSE ? ERROR_BUSY : ERROR_SETUP,
                      (int)event->errnum, "cannot publish port %u at %s", port.inside,
                      net_port_host_text(&port, text));
        published_cure(event, automatic, reterr);
        return r;
}

void net_published_write_port(JsonWriter *w, const NetPort *port) {
        char text[NET_PORT_TEXT];

        json_write_string(w, "address", net_port_host_text(port, text));
        json_write_uint(w, "port", port->inside);
}

void net_published_write(JsonWriter *w, const NetPublished *published) {
        for (size_t i = 0; published && i < published->count; i++) {
                json_write_object(w, NULL);
                net_published_write_port(w, &published->items[i]);
                json_write_end(w);
        }
}
