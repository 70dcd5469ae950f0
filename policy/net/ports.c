/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/net/ports.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Reads a port of up to five digits, from lowest on. Returns the number of bytes, or -EINVAL. */
static int ports_read(const char *text, unsigned lowest, uint16_t *ret) {
        const size_t length = strspn(text, "0123456789");
        unsigned port = 0;

        if (length == 0 || length > 5 || (text[0] == '0' && length > 1))
                return -EINVAL;
        for (size_t i = 0; i < length; i++)
                port = port * 10 + (unsigned)(text[i] - '0');
        if (port < lowest || port > UINT16_MAX)
                return -EINVAL;
        *ret = (uint16_t)port;
        return (int)length;
}

/* Reads "ADDRESS:" or "[ADDRESS]:". Returns the number of its bytes, or -EINVAL. */
static int ports_read_address(const char *text, NetAddress *ret) {
        const bool brackets = text[0] == '[';
        const size_t start = brackets ? 1 : 0, length = strcspn(text + start, brackets ? "]" : ":");
        const size_t end = start + length + start;

        if (net_address_parse(text + start, length, ret) < 0 || text[end - start] == '\0' ||
            text[end] != ':' || (ret->family == AF_INET6) != brackets)
                return -EINVAL;
        return (int)end + 1;
}

int net_publish_parse(const char *text, NetPort *ret, const char **ret_why) {
        NetPort port = { .address = { AF_INET, { 127, 0, 0, 1 } } };
        int used = 0;

        if (text[0] == '[' || strchr(text, '.'))
                used = ports_read_address(text, &port.address);
        if (used < 0)
                return error_why(ret_why, "has no valid address before its ports; write it like "
                                          "0.0.0.0:8080:3000 or [::1]:8080:3000");
        text += used;
        used = ports_read(text, 0, &port.host);
        if (used < 0)
                return error_why(ret_why, "has no valid port of the host; write HOSTPORT:PORT, "
                                          "such as 8080:3000, or 0:3000 for a free port");
        if (text[used] != ':')
                return error_why(ret_why, "has only one port; write HOSTPORT:PORT, such as "
                                          "8080:3000, or 0:3000 for a free port");
        text += used + 1;
        used = ports_read(text, 1, &port.inside);
        if (used < 0 || text[used])
                return error_why(ret_why, "has no valid port inside: write one number from 1 to "
                                          "65535 after the last \":\"; only TCP can be "
                                          "published");
        *ret = port;
        return 0;
}

int net_import_parse(const char *text, NetPort *ret, const char **ret_why) {
        NetPort port = { .address = { AF_INET, { 127, 0, 0, 1 } } };
        int used = ports_read(text, 1, &port.host);

        if (used < 0)
                return error_why(ret_why, "has no valid port of the host; write HOSTPORT or "
                                          "HOSTPORT:PORT, such as 5432");
        port.inside = port.host;
        if (text[used] == ':') {
                text += used + 1;
                used = ports_read(text, 1, &port.inside);
        }
        if (used < 0 || text[used])
                return error_why(ret_why, "has no valid port inside; write HOSTPORT or "
                                          "HOSTPORT:PORT, such as 5432 or 5432:5433");
        *ret = port;
        return 0;
}

int net_publish_check(const char *text, const char **ret_why) {
        NetPort port;

        return net_publish_parse(text, &port, ret_why);
}

int net_import_check(const char *text, const char **ret_why) {
        NetPort port;

        return net_import_parse(text, &port, ret_why);
}

bool net_port_equal(const NetPort *a, const NetPort *b) {
        return net_address_equal(&a->address, &b->address) && a->host == b->host &&
               a->inside == b->inside;
}

char *net_port_host_text(const NetPort *port, char ret[NET_PORT_TEXT]) {
        char text[NET_ADDRESS_TEXT];

        (void)snprintf(ret, NET_PORT_TEXT, port->address.family == AF_INET6 ? "[%s]:%u" : "%s:%u",
                       net_address_text(&port->address, text), port->host);
        return ret;
}

/* Whether a connection to the loopback reaches a socket with this address. */
static bool net_reached_by_loopback(const NetAddress *address) {
        const NetAddress any = { .family = address->family };

        return net_address_equal(address, &any) || net_address_equal(address, &net_loopback[0]) ||
               net_address_equal(address, &net_loopback[1]);
}

/* Refuses a port of the host that leads into the sandbox, from where it would lead back. */
static int net_refuse_circle(const StrList *imports, const StrList *published, Error *reterr) {
        const char *why;
        NetPort in, out;

        for (size_t i = 0; i < imports->count; i++)
                for (size_t k = 0; k < published->count; k++)
                        if (net_import_parse(imports->items[i], &in, &why) == 0 &&
                            net_publish_parse(published->items[k], &out, &why) == 0 &&
                            in.host == out.host && in.inside == out.inside &&
                            net_reached_by_loopback(&out.address))
                                return error_set(reterr, ERROR_POLICY, 0,
                                                 "port %u of the host is both published and "
                                                 "imported, so connections would go in a circle",
                                                 in.host);
        return 0;
}

int net_imports_check(const StrList *imports, const StrList *published, Error *reterr) {
        const char *why;
        NetPort port, other;

        for (size_t i = 0; i < imports->count; i++)
                for (size_t k = 0; k < i; k++) {
                        if (net_import_parse(imports->items[i], &port, &why) < 0 ||
                            net_import_parse(imports->items[k], &other, &why) < 0 ||
                            port.inside != other.inside || port.host == other.host)
                                continue;
                        return error_set(reterr, ERROR_POLICY, 0,
                                         "network.import: \"%s\" and \"%s\" have the same port "
                                         "inside",
                                         imports->items[k], imports->items[i]);
                }
        return net_refuse_circle(imports, published, reterr);
}
