/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the hosts that clients name in a ClientHello, a Host field, a URI, or a request to a proxy.
 * Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "policy/net/address.h"
#include "policy/net/rules.h"

typedef struct Authority {
        /* The name in the form of net_name_normal(), or the address in its usual text form. */
        char host[NET_NAME_MAX + 1];
        NetAddress address; /* Its family is 0 if the host is a name. */
        uint16_t port;      /* 0 if there is none. */
} Authority;

/* Reads a host without a port: a name, or an IPv4 address. Returns 0 or -EINVAL. An IPv4 address
 * must consist of four decimal numbers. */
int authority_host(const void *text, size_t length, Authority *ret);

/* Reads a name, or an address without brackets. Returns 0 or -EINVAL. */
int authority_name(const void *text, size_t length, Authority *ret);

/* Reads HOST, HOST:PORT, [IPv6] or [IPv6]:PORT. The port may be empty, as in "host:". Userinfo is
 * refused. Returns 0 or -EINVAL. */
int authority_parse(const void *text, size_t length, Authority *ret);
