/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/net/upstream.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Some programs read the lower-case variable, and others the upper-case one. All values have the
 * scheme http, because some clients need a missing module for socks5. */
int net_proxy_add_env(StrList *env) {
        static const char *const names[] = { "http_proxy", "https_proxy", "all_proxy",
                                             "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY" };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(names); i++)
                r = strlist_take(env, str_format("%s=http://198.18.0.%d:%d", names[i], NET_OWN,
                                                 NET_PROXY_PORT));
        if (r == 0)
                r = strlist_add(env, "no_proxy=localhost,127.0.0.1,::1");
        return r == 0 ? strlist_add(env, "NO_PROXY=localhost,127.0.0.1,::1") : r;
}

static const char scheme[] = "http://";

/* Returns the "@" after the login, or NULL. A password may contain "@", a host may not. */
static const char *upstream_login_end(const char *text) {
        return strrchr(text, '@');
}

/* Returns the value of a hexadecimal digit, or -1. */
static int upstream_digit(char digit) {
        static const char digits[] = "0123456789abcdef";
        const char *found = digit ? strchr(digits, digit | 0x20) : NULL;

        return found ? (int)(found - digits) : -1;
}

/* Writes the login without %XX. A header field must not contain control characters. */
static int upstream_read_login(const char *text, size_t length, char ret[NET_LOGIN_MAX + 1]) {
        size_t at = 0;

        for (size_t i = 0; i < length; i++) {
                int byte = (unsigned char)text[i];

                if (byte == '%') {
                        const int high = i + 2 < length ? upstream_digit(text[i + 1]) : -1;
                        const int low = high >= 0 ? upstream_digit(text[i + 2]) : -1;

                        if (low < 0)
                                return -EINVAL;
                        byte = high << 4 | low;
                        i += 2;
                }
                if (at == NET_LOGIN_MAX || byte < ' ' || byte == 0x7f)
                        return -EINVAL;
                ret[at++] = (char)byte;
        }
        ret[at] = '\0';
        /* A proxy splits user and password at the first colon. */
        if (!strchr(ret, ':') && at < NET_LOGIN_MAX)
                memcpy(ret + at, ":", 2);
        return ret[0] != ':' && strchr(ret, ':') ? 0 : -EINVAL;
}

static int upstream_read_host(const char *text, size_t length, NetUpstream *ret) {
        const bool brackets = length > 2 && text[0] == '[' && text[length - 1] == ']';
        NetAddress address;

        if (net_address_parse(text + brackets, length - 2 * brackets, &address) == 0 &&
            (address.family == AF_INET6) == brackets) {
                ret->address = address;
                return 0;
        }
        return brackets ? -EINVAL : net_name_normal(text, length, ret->name);
}

int net_upstream_parse(const char *text, NetUpstream *ret, const char **ret_why) {
        NetUpstream upstream = { 0 };
        const char *login, *host, *colon;
        size_t length;

        if (strncmp(text, scheme, sizeof(scheme) - 1) != 0)
                return error_why(ret_why, "is not the URL of an HTTP proxy; write it like "
                                          "http://proxy.example.com:3128");
        text += sizeof(scheme) - 1;
        login = upstream_login_end(text);
        host = login ? login + 1 : text;
        if (login && upstream_read_login(text, (size_t)(login - text), upstream.login) < 0)
                return error_why(ret_why, "has no valid user and password before the \"@\"; "
                                          "write special characters as %XX");
        length = strlen(host);
        if (length > 0 && host[length - 1] == '/')
                length--;
        colon = memrchr(host, ':', length);
        if (!colon ||
            net_port_read(colon + 1, length - (size_t)(colon + 1 - host), &upstream.port) < 0)
                return error_why(ret_why, "does not end in a port; write it like "
                                          "http://proxy.example.com:3128");
        if (upstream_read_host(host, (size_t)(colon - host), &upstream) < 0)
                return error_why(ret_why, "has no valid host; write it like "
                                          "http://proxy.example.com:3128 or "
                                          "http://[2001:db8::1]:3128");
        *ret = upstream;
        return 0;
}

int net_upstream_check(const char *text, const char **ret_why) {
        NetUpstream upstream;

        return net_upstream_parse(text, &upstream, ret_why);
}

char *net_upstream_mask(const char *text) {
        const char *login = upstream_login_end(text);

        return login ? str_format("%s***%s", scheme, login) : strdup(text);
}
