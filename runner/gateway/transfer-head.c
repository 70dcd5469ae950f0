/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/strings.h"
#include "gateway/secrets.h"
#include "gateway/transfer.h"
#include "gateway/tunnel-head.h"

/* Headers of one connection, which is not the one to the other side (RFC 9110, section 7.6.1), and
 * those that libcurl and libmicrohttpd write themselves. */
static const char *const own_headers[] = {
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "content-length",
        "expect",
        "host",
        /* The gateway looks for credentials in the response, so it must not be compressed. */
        "accept-encoding",
};

static bool header_is_own(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(own_headers); i++)
                if (strcasecmp(own_headers[i], name) == 0)
                        return true;
        return false;
}

/* --- the request --- */

static int transfer_append(Exchange *e, char *line) {
        struct curl_slist *longer = line ? curl_slist_append(e->headers, line) : NULL;

        if (line)
                explicit_bzero(line, strlen(line));
        free(line);
        if (!longer)
                return -ENOMEM;
        e->headers = longer;
        return 0;
}

static int transfer_append_inject(Exchange *e, const Inject *inject) {
        char *value = secret_value(inject);
        int r = value ? transfer_append(e, str_format("%s: %s", inject->name, value)) : -ENOMEM;

        if (value)
                explicit_bzero(value, strlen(value));
        free(value);
        return r;
}

static bool route_sets(const Route *route, bool query, const char *name, size_t length) {
        for (size_t i = 0; i < route->injects_count; i++)
                if (route->injects[i].query == query && strlen(route->injects[i].name) == length &&
                    strncasecmp(route->injects[i].name, name, length) == 0)
                        return true;
        return false;
}

typedef struct HeaderCopy {
        Exchange *e;
        int r;
} HeaderCopy;

/* A header whose value is empty needs a semicolon in libcurl's notation. */
static enum MHD_Result transfer_copy_header(void *data, enum MHD_ValueKind kind, const char *name,
                                            const char *value) {
        HeaderCopy *copy = data;

        (void)kind;
        value = value ? value : "";
        if (header_is_own(name) || judge_has_token(copy->e->gateway, value) ||
            route_sets(copy->e->route, false, name, strlen(name)))
                return MHD_YES;
        copy->r = transfer_append(copy->e, value[0] ? str_format("%s: %s", name, value)
                                                    : str_format("%s;", name));
        return copy->r < 0 ? MHD_NO : MHD_YES;
}

/* Whether a request without a body must say so: servers expect one with these methods. */
static bool transfer_needs_length(const Exchange *e) {
        static const char *const methods[] = { "POST", "PUT", "PATCH" };

        for (size_t i = 0; e->length == 0 && i < ELEMENTSOF(methods); i++)
                if (streq(e->method, methods[i]))
                        return true;
        return false;
}

int transfer_add_headers(Exchange *e) {
        /* libcurl adds these by itself if the program has not sent them. */
        static const char *const none[] = { "Accept:", "Expect:", "Content-Type:" };
        HeaderCopy copy = { .e = e };
        int r;

        (void)MHD_get_connection_values(e->connection, MHD_HEADER_KIND, transfer_copy_header,
                                        &copy);
        r = copy.r;
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(none); i++) {
                char name[24];

                (void)snprintf(name, sizeof(name), "%.*s", (int)strlen(none[i]) - 1, none[i]);
                if (!MHD_lookup_connection_value(e->connection, MHD_HEADER_KIND, name) ||
                    header_is_own(name))
                        r = transfer_append(e, strdup(none[i]));
        }
        if (r == 0 && transfer_needs_length(e))
                r = transfer_append(e, strdup("Content-Length: 0"));
        for (size_t i = 0; r == 0 && i < e->route->injects_count; i++) {
                const Inject *inject = &e->route->injects[i];

                if (!inject->query)
                        r = transfer_append_inject(e, inject);
                if (r == 0)
                        r = secret_scrub(inject, &e->scrub);
        }
        return r == 0 ? transfer_append(e, strdup("Accept-Encoding: identity")) : r;
}

/* Appends a parameter of the route. Takes ownership of url. */
static char *url_add_inject(char *url, CURL *easy, const Inject *inject) {
        _cleanup_free_ char *value = secret_value(inject);
        char *escaped = url && value ? curl_easy_escape(easy, value, 0) : NULL;
        char *longer = escaped ? str_format("%s%c%s=%s", url, strchr(url, '?') ? '&' : '?',
                                            inject->name, escaped)
                               : NULL;

        curl_free(escaped);
        free(url);
        return longer;
}

/* Appends the program's query without parameters that the route sets, or that have the token. */
static char *url_add_query(char *url, const Exchange *e, const char *query) {
        while (url && *query) {
                const size_t length = strcspn(query, "&"), name = strcspn(query, "=&");
                _cleanup_free_ char *part = strndup(query, length);
                char *longer = part;

                query += length + (query[length] == '&');
                if (length == 0 || (part && (route_sets(e->route, true, part, name) ||
                                             judge_has_token(e->gateway, part))))
                        continue;
                longer = part ? str_format("%s%c%s", url, strchr(url, '?') ? '&' : '?', part)
                              : NULL;
                free(url);
                url = longer;
        }
        return url;
}

/* Returns the upstream's URL without its path. full: with the port, even if it is the usual one.
 * Owned by the caller; NULL without memory. */
static char *transfer_origin(const Route *route, bool full) {
        const bool bracket = route->address.family && strchr(route->host, ':');
        const bool usual = route->port == (route->tls ? 443 : 80);
        _cleanup_free_ char *port = full || !usual ? str_format(":%u", route->port) : strdup("");

        return port ? str_format("%s://%s%s%s%s", route->tls ? "https" : "http", bracket ? "[" : "",
                                 route->host, bracket ? "]" : "", port)
                    : NULL;
}

char *transfer_url(const Exchange *e) {
        const Route *route = e->route;
        const size_t length = strcspn(e->rest, "?");
        _cleanup_free_ char *origin = transfer_origin(route, true);
        char *url = origin ? str_format("%s%s%.*s", origin, route->base, (int)length, e->rest)
                           : NULL;

        if (url && !route->base[0] && length == 0) {
                char *longer = str_format("%s/", url);

                free(url);
                url = longer;
        }
        url = url_add_query(url, e, e->rest + length + (e->rest[length] == '?'));
        for (size_t i = 0; url && i < route->injects_count; i++)
                if (route->injects[i].query)
                        url = url_add_inject(url, e->easy, &route->injects[i]);
        return url;
}

/* --- the response --- */

/* A response of 1xx is not the last one: the next status line replaces it. */
static int transfer_take_status(Exchange *e, const char *line) {
        const char *space = strchr(line, ' ');

        e->status = space ? (unsigned)strtoul(space + 1, NULL, 10) : 0;
        e->answer_length = LENGTH_UNKNOWN;
        strlist_clear(&e->answer);
        /* 101 without a request for it would switch to a protocol that the gateway does not carry.
         */
        return (e->status == 101 && !e->tunnel) || e->status < 100 || e->status > 599 ? -EPROTO : 0;
}

static bool header_is(const char *line, const char *name) {
        const size_t length = strlen(name);

        return strncasecmp(line, name, length) == 0 && line[length] == ':';
}

/* Notes the length of the body, and refuses a body in which holt would find no credential. */
static int transfer_note_header(Exchange *e, const char *line) {
        const char *value = strchr(line, ':') + 1;

        value += strspn(value, " \t");
        if (header_is(line, "content-length") &&
            str_to_uint(value, INT64_MAX, &e->answer_length) < 0)
                return -EPROTO;
        e->upgrades |= header_is(line, "upgrade") && header_has_word(value, "websocket");
        e->chunked |= header_is(line, "transfer-encoding");
        return header_is(line, "content-encoding") && strcasecmp(value, "identity") != 0 &&
                               e->scrub.count > 0
                       ? -EPROTO
                       : 0;
}

/* Returns the part of a redirect's target behind the upstream's own URL, or NULL if it leads
 * somewhere else. */
static const char *location_rest(const Exchange *e, const char *value) {
        const Route *route = e->route;
        _cleanup_free_ char *bare = transfer_origin(route, false),
                            *full = transfer_origin(route, true);
        const char *const origins[] = { bare, full };
        const size_t base = strlen(route->base);

        for (size_t i = 0; i < ELEMENTSOF(origins); i++) {
                const size_t length = origins[i] ? strlen(origins[i]) : 0;

                if (length > 0 && strncasecmp(value, origins[i], length) == 0 &&
                    (value[length] == '\0' || strchr("/?#", value[length]))) {
                        value += length;
                        break;
                }
        }
        if ((value[0] != '/' && value[0] != '\0') || str_starts(value, "//") ||
            strncmp(value, route->base, base) != 0)
                return NULL;
        value += base;
        return value[0] == '\0' || strchr("/?#", value[0]) ? value : NULL;
}

/* A redirect within the upstream leads to the route again, so that the program can follow it.
 * Returns the header; owned by the caller, or NULL without memory. */
static char *transfer_location(const Exchange *e, const char *line) {
        const char *value = strchr(line, ':') + 1, *rest;

        rest = location_rest(e, value + strspn(value, " \t"));
        if (!rest)
                return strdup(line);
        return e->tls ? str_format("Location: %s%s", rest[0] ? "" : "/", rest)
                      : str_format("Location: /%s%s", e->route->name, rest);
}

int transfer_take_header(Exchange *e, const char *line, size_t length) {
        _cleanup_free_ char *text = NULL, *name = NULL;
        const char *colon;
        int r;

        while (length > 0 && (line[length - 1] == '\r' || line[length - 1] == '\n'))
                length--;
        text = strndup(line, length);
        if (!text)
                return -ENOMEM;
        if (length == 0) {
                e->answered = e->status >= 200;
                if (e->status == 204 || e->status == 304)
                        e->answer_length = 0;
                return 0;
        }
        if (str_starts(text, "HTTP/"))
                return transfer_take_status(e, text);
        colon = strchr(text, ':');
        if (!colon || e->answered) /* A trailer is dropped. */
                return 0;
        r = transfer_note_header(e, text);
        name = strndup(text, (size_t)(colon - text));
        if (r < 0 || !name)
                return r < 0 ? r : -ENOMEM;
        if (header_is_own(name))
                return 0;
        scrub_text(&e->scrub, text);
        return header_is(text, "location") ? strlist_take(&e->answer, transfer_location(e, text))
                                           : strlist_add(&e->answer, text);
}
