/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/authority.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static void authority_set_address(const NetAddress *address, Authority *ret) {
        char text[NET_ADDRESS_TEXT];

        *ret = (Authority){ .address = *address };
        strcpy(ret->host, net_address_text(address, text));
}

/* Whether the last part of a name is a number. No real name ends in a number. But inet_aton(3), and
 * some servers and resolvers, read "127.1", "0x7f.1" and "2130706433" as addresses. */
static bool authority_ends_in_number(const char *name) {
        const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;

        return last[strspn(last, "0123456789")] == '\0' ||
               (last[0] == '0' && last[1] == 'x' &&
                last[2 + strspn(last + 2, "0123456789abcdef")] == '\0');
}

int authority_host(const void *text, size_t length, Authority *ret) {
        Authority name = { 0 };
        NetAddress address;

        if (net_address_parse(text, length, &address) == 0 && address.family == AF_INET) {
                authority_set_address(&address, ret);
                return 0;
        }
        if (net_name_normal(text, length, name.host) < 0 || authority_ends_in_number(name.host))
                return -EINVAL;
        *ret = name;
        return 0;
}

static int authority_ipv6(const char *text, size_t length, Authority *ret) {
        NetAddress address;

        if (net_address_parse(text, length, &address) < 0 || address.family != AF_INET6)
                return -EINVAL;
        authority_set_address(&address, ret);
        return 0;
}

int authority_name(const void *text, size_t length, Authority *ret) {
        return authority_ipv6(text, length, ret) == 0 ? 0 : authority_host(text, length, ret);
}

static int authority_port(const char *text, size_t length, uint16_t *ret) {
        unsigned port = 0;

        if (length > 5)
                return -EINVAL;
        for (size_t i = 0; i < length; i++) {
                if (text[i] < '0' || text[i] > '9')
                        return -EINVAL;
                port = port * 10 + (unsigned)(text[i] - '0');
        }
        if (port > UINT16_MAX || (length > 0 && port == 0))
                return -EINVAL;
        *ret = (uint16_t)port;
        return 0;
}

int authority_parse(const void *text, size_t length, Authority *ret) {
        const char *host = text, *end = host + length, *rest;
        Authority authority;
        int r;

        if (length == 0)
                return -EINVAL;
        if (*host == '[') {
                const char *bracket = memchr(host, ']', length);

                if (!bracket)
                        return -EINVAL;
                rest = bracket + 1;
                r = authority_ipv6(host + 1, (size_t)(bracket - host) - 1, &authority);
        } else {
                const char *colon = memchr(host, ':', length);

                rest = colon ? colon : end;
                r = authority_host(host, (size_t)(rest - host), &authority);
        }
        if (r < 0 || (rest < end && *rest != ':'))
                return -EINVAL;
        if (rest < end && authority_port(rest + 1, (size_t)(end - rest) - 1, &authority.port) < 0)
                return -EINVAL;
        *ret = authority;
        return 0;
}
