/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies of an upstream. All routes have the same host, so only the path keeps the cookies of
 * their services apart. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/strings.h"
#include "gateway/transfer.h"

/* A part of a header, without spaces around it. */
typedef struct CookiePart {
        const char *at;
        size_t length;
} CookiePart;

static CookiePart cookie_trim(const char *at, size_t length, const char *around) {
        while (length > 0 && strchr(around, *at)) {
                at++;
                length--;
        }
        while (length > 0 && strchr(around, at[length - 1]))
                length--;
        return (CookiePart){ .at = at, .length = length };
}

/* Whether this part is the attribute. *ret_value: its value without quotes. */
static bool cookie_has(const char *part, size_t length, const char *name, CookiePart *ret_value) {
        const char *equals = memchr(part, '=', length);
        const size_t size = equals ? (size_t)(equals - part) : length;
        const CookiePart found = cookie_trim(part, size, " \t");

        if (found.length != strlen(name) || strncasecmp(found.at, name, found.length) != 0)
                return false;
        *ret_value = equals ? cookie_trim(equals + 1, length - size - 1, " \t\"")
                            : (CookiePart){ .at = part, .length = 0 };
        return true;
}

/* Translates a path of the upstream to the part behind the route's name. Returns false if no
 * request of the route has such a path. */
static bool cookie_map(const Route *route, CookiePart path, CookiePart *ret) {
        const size_t base = strlen(route->base);

        if (path.length >= base && strncmp(path.at, route->base, base) == 0 &&
            (path.length == base || path.at[base] == '/')) {
                *ret = (CookiePart){ .at = path.at + base, .length = path.length - base };
                return true;
        }
        *ret = (CookiePart){ .at = "/", .length = 1 };
        return path.length < base && strncmp(path.at, route->base, path.length) == 0 &&
               (path.at[path.length - 1] == '/' || route->base[path.length] == '/');
}

/* The path that a client takes if the cookie has none: that of the request up to its last slash. */
static CookiePart cookie_default(const Exchange *e) {
        size_t length = strcspn(e->rest, "?");

        while (length > 0 && e->rest[length - 1] != '/')
                length--;
        return (CookiePart){ .at = e->rest, .length = length };
}

/* Copies the header without Domain and Path. If Path comes twice, clients take the last one.
 * Returns NULL without memory. */
static char *cookie_copy(const char *line, size_t size, CookiePart *ret_path) {
        char *all = malloc(size), *to = all;

        for (const char *part = line; all; part++) {
                const size_t length = strcspn(part, ";");
                CookiePart value;

                if (part > line && cookie_has(part, length, "path", &value)) {
                        *ret_path = value;
                } else if (part == line || !cookie_has(part, length, "domain", &value)) {
                        to = mempcpy(to, part - (part > line), length + (part > line));
                        *to = '\0';
                }
                part += length;
                if (!*part)
                        break;
        }
        return all;
}

int transfer_take_cookie(Exchange *e, const char *line) {
        static const char start[] = "; Path=/";
        const size_t size = strlen(start) + strlen(e->route->name) + 2 * strlen(line) +
                            strlen(e->rest) + 2;
        CookiePart path = { .length = 0 }, mapped = cookie_default(e);
        _cleanup_free_ char *all = NULL;

        if (e->tls) /* The program has used the name of the host. */
                return strlist_add(&e->answer, line);
        all = cookie_copy(line, size, &path);
        if (!all)
                return -ENOMEM;
        if (path.length > 0 && path.at[0] == '/' && !cookie_map(e->route, path, &mapped))
                return 0;
        /* Some clients would also send a cookie for /NAME to /NAME2, so there is always a slash. */
        if (mapped.length == 0)
                mapped = (CookiePart){ .at = "/", .length = 1 };
        (void)snprintf(all + strlen(all), size - strlen(all), "%s%s%.*s", start, e->route->name,
                       (int)mapped.length, mapped.at);
        return strlist_take(&e->answer, TAKE_PTR(all));
}
