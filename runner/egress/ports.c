/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/list.h"
#include "base/strings.h"
#include "egress/connection.h"
#include "wire/socket-address.h"

enum {
        PORTS_TURN = 64,      /* Connections until others have their turn. */
        PORTS_BACKLOG = 4096, /* The kernel lowers it to net.core.somaxconn. */
};

typedef struct Published {
        struct Published *next;
        Egress *egress;
        NetPort port; /* With the host's port that is in use. */
        int fd;
        LoopWatch *watch;
} Published;

typedef struct Ports {
        StrList wanted; /* Ports to publish, of the settings. */
        NetPort *imports;
        size_t imports_count;
        Published *published;
        size_t published_count;
} Ports;

static Ports *ports_of(Egress *egress) {
        if (!egress->ports)
                egress->ports = calloc(1, sizeof(*egress->ports));
        return egress->ports;
}

/* --- settings --- */

int ports_set_publish(Egress *egress, const char *value, Error *reterr) {
        Ports *ports = ports_of(egress);

        return !ports || strlist_add(&ports->wanted, value) < 0 ? error_oom(reterr) : 0;
}

int ports_set_import(Egress *egress, const char *value, Error *reterr) {
        Ports *ports = ports_of(egress);
        const char *why = "";
        NetPort port, *grown;

        if (net_import_parse(value, &port, &why) < 0)
                return error_set(reterr, ERROR_PROTOCOL, 0, "port \"%s\" %s", value, why);
        grown = ports ? reallocarray(ports->imports, ports->imports_count + 1, sizeof(*grown))
                      : NULL;
        if (!grown)
                return error_oom(reterr);
        ports->imports = grown;
        ports->imports[ports->imports_count++] = port;
        return 0;
}

/* --- published ports --- */

static void published_on_event(void *data, uint32_t events) {
        const Published *published = data;

        (void)events;
        for (int i = 0; i < PORTS_TURN; i++) {
                int fd = egress_accept(published->egress, published->fd, NULL, NULL);

                if (fd < 0)
                        return;
                connection_publish(published->egress, fd, published->port.inside);
        }
}

static void published_free(Egress *egress, Published *published) {
        if (list_remove(&egress->ports->published, published))
                egress->ports->published_count--;
        published->watch = loop_unwatch(published->watch);
        fd_close(published->fd);
        free(published);
}

/* Binds the host's port. Port 0 becomes the chosen one. */
static int published_bind(Published *published) {
        NetPort *port = &published->port;
        struct sockaddr_storage storage;
        socklen_t length = socket_address_set(&port->address, port->host, &storage);
        const int on = 1;
        NetAddress bound;

        published->fd = socket(port->address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        socket_set_stream(published->fd);
        if (net_address_is_loopback(&port->address))
                socket_set_local(published->fd);
        if (published->fd < 0 ||
            setsockopt(published->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
            (port->address.family == AF_INET6 &&
             setsockopt(published->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
            bind(published->fd, (const struct sockaddr *)&storage, length) < 0 ||
            listen(published->fd, PORTS_BACKLOG) < 0)
                return -errno;
        length = sizeof(storage);
        if (getsockname(published->fd, (struct sockaddr *)&storage, &length) < 0)
                return -errno;
        socket_address_get(&storage, &bound, &port->host);
        return 0;
}

static int published_new(Egress *egress, const char *value, NetPort *ret) {
        Ports *ports = ports_of(egress);
        Published *published = ports ? calloc(1, sizeof(*published)) : NULL;
        const char *why;
        int r;

        if (!published)
                return -ENOMEM;
        *published = (Published){ .egress = egress, .fd = FD_NONE };
        r = net_publish_parse(value, &published->port, &why);
        if (r == 0 && ports->published_count == PUBLISHED_MAX)
                r = -ENOSPC;
        if (r == 0)
                r = published_bind(published);
        if (r == 0)
                r = loop_watch(egress->loop, published->fd, EPOLLIN, published_on_event, published,
                               &published->watch, NULL);
        *ret = published->port;
        if (r < 0) {
                published_free(egress, published);
                return r;
        }
        list_append(&ports->published, published);
        ports->published_count++;
        return 0;
}

static void ports_tell(Egress *egress, EgressEventType type, const NetPort *port, const char *value,
                       int errnum) {
        EgressEvent event = { .type = type,
                              .errnum = (uint32_t)errnum,
                              .port = port->host,
                              .inside = port->inside,
                              .family = port->address.family };

        memcpy(event.address, port->address.bytes, sizeof(event.address));
        (void)snprintf(event.other, sizeof(event.other), "%s", value);
        egress_send(egress, &event);
}

void ports_publish(Egress *egress, const char *value) {
        NetPort port = { 0 };
        int r = published_new(egress, value, &port);

        ports_tell(egress, EGRESS_PUBLISHED, &port, value, -r);
}

void ports_unpublish(Egress *egress, const char *value) {
        const char *why;
        NetPort port = { 0 };
        int r = net_publish_parse(value, &port, &why);
        Published *published = r == 0 && egress->ports ? egress->ports->published : NULL;

        while (published && !net_port_equal(&published->port, &port))
                published = published->next;
        if (published)
                published_free(egress, published);
        ports_tell(egress, EGRESS_UNPUBLISHED, &port, value, published ? 0 : ENOENT);
}

int ports_open(Egress *egress, Error *reterr) {
        const StrList *wanted = egress->ports ? &egress->ports->wanted : NULL;

        (void)reterr;
        for (size_t i = 0; wanted && i < wanted->count; i++)
                ports_publish(egress, wanted->items[i]);
        return 0;
}

/* --- imported ports --- */

size_t ports_imports(const Egress *egress, const NetPort **ret) {
        *ret = egress->ports ? egress->ports->imports : NULL;
        return egress->ports ? egress->ports->imports_count : 0;
}

const NetPort *ports_imported(const Egress *egress, const NetAddress *asked, uint16_t port) {
        const Ports *ports = egress->ports;

        if (!net_address_equal(asked, &net_loopback[0]) &&
            !net_address_equal(asked, &net_loopback[1]))
                return NULL;
        for (size_t i = 0; ports && i < ports->imports_count; i++)
                if (ports->imports[i].inside == port)
                        return &ports->imports[i];
        return NULL;
}
