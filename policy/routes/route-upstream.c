/* SPDX-License-Identifier: Apache-2.0 */
/* The URL of a route's upstream: http[s]://HOST[:PORT][/BASE]. */
#include <string.h>
#include <sys/socket.h>

#include "base/strings.h"
#include "policy/net/address.h"
#include "policy/net/rules.h"
#include "policy/routes/route-internal.h"

/* The bytes of a path (pchar of RFC 3986). */
static const char upstream_path[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                    "-._~!$&'()*+,;=:@%/";

/* Writes the usual form of a name, an IPv4 address, or an IPv6 address in brackets. */
static int route_upstream_host(const char *text, size_t length, char ret[NET_NAME_MAX + 1],
                               const char **ret_why) {
        const bool brackets = length > 2 && text[0] == '[' && text[length - 1] == ']';
        char address_text[NET_ADDRESS_TEXT];
        NetAddress address;

        if (net_address_parse(text + brackets, length - 2 * brackets, &address) == 0 &&
            (address.family == AF_INET6) == brackets) {
                (void)snprintf(ret, NET_NAME_MAX + 1, brackets ? "[%s]" : "%s",
                               net_address_text(&address, address_text));
                return 0;
        }
        if (brackets || net_name_normal(text, length, ret) < 0)
                return error_why(ret_why, "has no valid host");
        if (net_name_numeric(ret))
                return error_why(ret_why, "has an address in an unusual form; write four decimal "
                                          "numbers, such as 192.0.2.1");
        return 0;
}

/* Returns the end of the host, which is before a port, the path, or the end of the text. */
static const char *route_upstream_host_end(const char *host) {
        const char *bracket = host[0] == '[' ? strchr(host, ']') : NULL;

        return bracket ? bracket + 1 : host + strcspn(host, ":/?#");
}

/* A path with "." or ".." could lead out of what "allow" says. */
static bool route_upstream_has_dots(const char *path) {
        for (; *path; path += strcspn(path, "/")) {
                path++;
                if (path[0] == '.' && path[1] == '.')
                        path++;
                if (path[0] == '.' && (path[1] == '/' || path[1] == '\0'))
                        return true;
        }
        return false;
}

static int route_upstream_check_path(const char *path, const char **ret_why) {
        if (strpbrk(path, "?#"))
                return error_why(ret_why, "must not have a query or a fragment; write a query "
                                          "into the member \"query\"");
        if (path[0] && path[0] != '/')
                return error_why(ret_why, "has no valid host");
        if (path[strspn(path, upstream_path)])
                return error_why(ret_why, "has a character that no path contains; write it as "
                                          "%XX");
        if (route_upstream_has_dots(path))
                return error_why(ret_why, "must not have \".\" or \"..\" in its path");
        return 0;
}

/* Returns the URL in its usual form, or NULL with *ret_why, which is NULL if memory is out. */
static char *route_upstream_normal(const char *text, const char **ret_why) {
        const char *scheme = str_starts(text, "https://")  ? "https://"
                             : str_starts(text, "http://") ? "http://"
                                                           : NULL;
        const char *host = scheme ? text + strlen(scheme) : text,
                   *end = route_upstream_host_end(host);
        const char *path = end;
        char name[NET_NAME_MAX + 1];
        size_t length;
        uint16_t port;

        *ret_why = "must begin with https:// or http://";
        if (!scheme)
                return NULL;
        *ret_why = "must not contain a user or a password; write them into the member \"header\"";
        if (memchr(host, '@', strcspn(host, "/")))
                return NULL;
        if (route_upstream_host(host, (size_t)(end - host), name, ret_why) < 0)
                return NULL;
        *ret_why = "has no valid port";
        if (*end == ':') {
                path = end + strcspn(end, "/?#");
                if (net_port_read(end + 1, (size_t)(path - end - 1), &port) < 0)
                        return NULL;
        }
        if (route_upstream_check_path(path, ret_why) < 0)
                return NULL;
        *ret_why = NULL;
        for (length = strlen(path); length > 0 && path[length - 1] == '/'; length--)
                continue;
        return str_format("%s%s%.*s%.*s", scheme, name, (int)(path - end), end, (int)length, path);
}

int route_read_upstream(const RouteReader *reader, const JsonValue *value, const char *path) {
        _cleanup_free_ char *url = NULL;
        const char *why;

        if (!value)
                return route_fail(reader, path,
                                  "the URL is missing; write it like https://api.example.com");
        if (!json_string(value))
                return route_fail_type(reader, value, path, "a string");
        url = route_upstream_normal(json_string(value), &why);
        if (!url && !why)
                return error_oom(reader->reterr);
        if (!url)
                return route_fail(reader, path, "the URL %s; write it like https://api.example.com",
                                  why);
        json_write_string(reader->w, "upstream", url);
        return 0;
}

static int route_read_tls_host(const RouteReader *reader, const JsonValue *item, const char *path) {
        const char *text = json_string(item);
        char name[NET_NAME_MAX + 1];

        if (!text)
                return route_fail_type(reader, item, path, "a string");
        if (net_name_normal(text, strlen(text), name) < 0 || net_name_numeric(name) ||
            !strchr(name, '.'))
                return route_fail(reader, path,
                                  "is not the full name of a host, such as api.example.com");
        json_write_string(reader->w, NULL, name);
        return 0;
}

int route_read_terminate_tls(const RouteReader *reader, const JsonValue *value, const char *path) {
        const char *upstream = json_member_text(reader->route, "upstream");
        const char *host = strstr(upstream, "://");
        int r;

        if (!value)
                return 0;
        if (host && host[3 + strcspn(host + 3, "/")] == '/' &&
            host[4 + strcspn(host + 3, "/")] != '\0')
                return route_fail(reader, path,
                                  "the URL of the upstream must not have a path then, because "
                                  "programs send the whole path");
        json_write_array(reader->w, "terminate_tls");
        r = route_each(reader, value, path, JSON_ARRAY, route_read_tls_host);
        if (r == 0)
                json_write_end(reader->w);
        return r;
}
