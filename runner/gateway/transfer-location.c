/* SPDX-License-Identifier: Apache-2.0 */
/* Redirects of an upstream. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/strings.h"
#include "gateway/transfer.h"
#include "policy/plan.h"

static void location_clear(CURLU **url) {
        curl_url_cleanup(*url);
}

enum { HTTPS_PORT = 443 };

#define _cleanup_url_ __attribute__((cleanup(location_clear)))

/* Returns a part of the URL, or NULL. curl_free() it. */
static char *location_part(CURLU *url, CURLUPart part) {
        char *text = NULL;

        return curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK ? text : NULL;
}

static bool location_same(CURLU *a, CURLU *b, CURLUPart part) {
        char *one = location_part(a, part), *two = location_part(b, part);
        const bool same = one && two && strcasecmp(one, two) == 0;

        curl_free(one);
        curl_free(two);
        return same;
}

/* Whether another route has the host of which the gateway terminates the TLS. Clients may translate
 * other characters to those of a name, so a host with such characters counts, too. */
static bool location_is_tls_host(const Exchange *e, const char *host) {
        const size_t length = strlen(host), size = length - (length > 0 && host[length - 1] == '.');

        for (const char *c = host; e->gateway->terminates && *c; c++)
                if ((unsigned char)*c >= 0x80 || *c == '%')
                        return true;
        for (size_t i = 0; i < e->gateway->routes_count; i++) {
                const Route *route = &e->gateway->routes[i];

                for (size_t k = 0; route != e->route && k < route->tls_hosts.count; k++)
                        if (strlen(route->tls_hosts.items[k]) == size &&
                            strncasecmp(route->tls_hosts.items[k], host, size) == 0)
                                return true;
        }
        return false;
}

/* Whether the place is one of another route. Many names and addresses lead to the loopback, so for
 * the port of the routes, the host does not matter. */
static bool location_is_route(const Exchange *e, CURLU *url) {
        char *port = location_part(url, CURLUPART_PORT), *host = location_part(url, CURLUPART_HOST);
        uint64_t number = 0;
        const bool is = port && str_to_uint(port, UINT16_MAX, &number) == 0 &&
                        (number == ROUTES_PORT ||
                         (number == HTTPS_PORT && host && location_is_tls_host(e, host)));

        curl_free(port);
        curl_free(host);
        return is;
}

/* Writes the header for a place at the upstream. */
static char *location_write(const Exchange *e, CURLU *url, const char *path) {
        const size_t base = strlen(e->route->base);
        const bool below = strncmp(path, e->route->base, base) == 0 &&
                           (path[base] == '/' || path[base] == '\0');
        const bool tls = e->tls;
        char *query = location_part(url, CURLUPART_QUERY),
             *fragment = location_part(url, CURLUPART_FRAGMENT);
        char *whole = below ? NULL : location_part(url, CURLUPART_URL), *line;

        if (below) /* "//" would begin a host. */
                line = str_format("Location: %s%s%s%s%s%s%s%s", tls ? "" : "/",
                                  tls ? "" : e->route->name,
                                  tls && str_starts(path + base, "//") ? "/." : "", path + base,
                                  query ? "?" : "", query ? query : "", fragment ? "#" : "",
                                  fragment ? fragment : "");
        else
                line = whole ? str_format("Location: %s", whole) : NULL;
        curl_free(query);
        curl_free(fragment);
        curl_free(whole);
        return line;
}

/* Resolves the value as a client does. Returns 0, or -EPROTO if clients could differ. */
static int location_resolve(const Exchange *e, CURLU *url, CURLU *base, const char *value) {
        _cleanup_free_ char *place = transfer_bare_url(e);

        if (!place || curl_url_set(base, CURLUPART_URL, place, CURLU_PATH_AS_IS) != CURLUE_OK ||
            curl_url_set(url, CURLUPART_URL, place, CURLU_PATH_AS_IS) != CURLUE_OK)
                return -ENOMEM;
        return value[strcspn(value, "\\?#")] == '\\' ||
                               curl_url_set(url, CURLUPART_URL, value,
                                            CURLU_NON_SUPPORT_SCHEME | CURLU_URLENCODE) != CURLUE_OK
                       ? -EPROTO
                       : 0;
}

int transfer_take_location(Exchange *e, const char *line) {
        const char *value = strchr(line, ':') + 1;
        _cleanup_url_ CURLU *url = curl_url(), *base = curl_url();
        char *path;
        int r;

        value += strspn(value, " \t");
        if (!value[0])
                return 0;
        r = url && base ? location_resolve(e, url, base, value) : -ENOMEM;
        if (r < 0)
                return r;
        if (!location_same(url, base, CURLUPART_SCHEME) ||
            !location_same(url, base, CURLUPART_HOST) || !location_same(url, base, CURLUPART_PORT))
                return location_is_route(e, url) ? -EPROTO : strlist_add(&e->answer, line);
        path = location_part(url, CURLUPART_PATH);
        r = !path ? -ENOMEM
            : judge_is_ambiguous(path, strlen(path))
                    ? -EPROTO
                    : strlist_take(&e->answer, location_write(e, url, path));
        curl_free(path);
        return r;
}
