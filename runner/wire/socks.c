/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/socks.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"

enum {
        SOCKS_VERSION = 5,
        SOCKS_NO_AUTHENTICATION = 0,
        SOCKS_NO_METHOD = 0xff,
        SOCKS_CONNECT = 1,
        SOCKS_IPV4 = 1,
        SOCKS_NAME = 3,
        SOCKS_IPV6 = 4,
};

int socks_greeting(const uint8_t *data, size_t length, uint8_t ret_reply[SOCKS_GREETING_REPLY]) {
        size_t methods;
        bool open;

        if (length > 0 && data[0] != SOCKS_VERSION)
                return -EBADMSG;
        if (length < 2)
                return 0;
        methods = data[1];
        if (methods == 0)
                return -EBADMSG;
        if (length < 2 + methods)
                return 0;
        open = memchr(data + 2, SOCKS_NO_AUTHENTICATION, methods);
        ret_reply[0] = SOCKS_VERSION;
        ret_reply[1] = open ? SOCKS_NO_AUTHENTICATION : SOCKS_NO_METHOD;
        return open ? (int)(2 + methods) : -EACCES;
}

/* Returns the length of the host's bytes after its type, or 0 for an unknown type. */
static size_t socks_host_length(uint8_t type, uint8_t first) {
        return type == SOCKS_IPV4   ? 4u
               : type == SOCKS_IPV6 ? 16u
               : type == SOCKS_NAME ? 1u + first
                                    : 0u;
}

static int socks_host(uint8_t type, const uint8_t *host, Authority *ret) {
        char text[NET_ADDRESS_TEXT];
        NetAddress address = { .family = type == SOCKS_IPV4 ? AF_INET : AF_INET6 };

        if (type == SOCKS_NAME)
                return authority_name(host + 1, host[0], ret);
        memcpy(address.bytes, host, socks_host_length(type, 0));
        (void)net_address_text(&address, text);
        return authority_name(text, strlen(text), ret);
}

int socks_request(const uint8_t *data, size_t length, Authority *ret) {
        static const uint8_t start[] = { SOCKS_VERSION, SOCKS_CONNECT, 0 };
        Authority authority;
        size_t host;

        if (length > 0 && data[0] != start[0])
                return -SOCKS_FAILURE;
        if (length > 1 && data[1] != start[1])
                return -SOCKS_NO_COMMAND;
        if (length > 2 && data[2] != start[2])
                return -SOCKS_FAILURE;
        if (length > 3 && socks_host_length(data[3], 0) == 0)
                return -SOCKS_NO_ADDRESS_TYPE;
        if (length < 5)
                return 0;
        host = socks_host_length(data[3], data[4]);
        if (length < 4 + host + 2)
                return 0;
        if (socks_host(data[3], data + 4, &authority) < 0)
                return -SOCKS_FAILURE;
        authority.port = (uint16_t)(data[4 + host] << 8 | data[4 + host + 1]);
        if (authority.port == 0)
                return -SOCKS_FAILURE;
        *ret = authority;
        return (int)(4 + host + 2);
}

/* Writes zeros as the address: it would be that of a socket outside, which programs inside need not
 * know.
 */
size_t socks_reply(int code, uint8_t ret[SOCKS_REPLY_MAX]) {
        const uint8_t reply[] = { SOCKS_VERSION, (uint8_t)code, 0, SOCKS_IPV4, 0, 0, 0, 0, 0, 0 };

        memcpy(ret, reply, sizeof(reply));
        return sizeof(reply);
}

int socks_code(int errnum) {
        static const struct {
                int errnum, code;
        } codes[] = {
                { 0, SOCKS_SUCCEEDED },
                { EACCES, SOCKS_NOT_ALLOWED },
                { EPERM, SOCKS_NOT_ALLOWED },
                { ENETUNREACH, SOCKS_NETWORK_UNREACHABLE },
                { EHOSTUNREACH, SOCKS_HOST_UNREACHABLE },
                { ECONNREFUSED, SOCKS_REFUSED },
                { ETIMEDOUT, SOCKS_TIMED_OUT },
        };

        for (size_t i = 0; i < ELEMENTSOF(codes); i++)
                if (codes[i].errnum == errnum)
                        return codes[i].code;
        return SOCKS_FAILURE;
}
