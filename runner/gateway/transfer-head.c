/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/strings.h"
#include "gateway/secrets.h"
#include "gateway/transfer.h"
#include "gateway/tunnel-head.h"

enum { TRAILERS_MAX = 64 << 10 }; /* bytes */

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
        "set-cookie2", /* obsolete (RFC 6265); it could set cookies for other routes */
        /* The gateway looks for credentials in the response, so it must not be compressed. */
        "accept-encoding",
};

/* Whether the names are the same for a server. Many of them, such as those of CGI and WSGI, take
 * "_" for "-". */
static bool header_same(const char *a, const char *b) {
        for (; *a && *b; a++, b++)
                if (strncasecmp(a, b, 1) != 0 && !(strchr("-_", *a) && strchr("-_", *b)))
                        return false;
        return *a == *b;
}

static bool header_is_own(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(own_headers); i++)
                if (header_same(own_headers[i], name))
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

/* Whether the route sets this header. */
static bool route_sets_header(const Route *route, const char *name) {
        for (size_t i = 0; i < route->injects_count; i++)
                if (!route->injects[i].query && header_same(route->injects[i].name, name))
                        return true;
        return false;
}

/* Whether the route sets a parameter that a server may read in this part of a query. */
static bool route_sets_parameter(const Route *route, const char *part) {
        for (size_t i = 0; i < route->injects_count; i++)
                if (route->injects[i].query && judge_query_names(part, route->injects[i].name))
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
            route_sets_header(copy->e->route, name))
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
                const size_t length = strcspn(query, "&");
                _cleanup_free_ char *part = strndup(query, length);
                char *longer = part;

                query += length + (query[length] == '&');
                if (length == 0 || (part && (route_sets_parameter(e->route, part) ||
                                             judge_has_token(e->gateway, part))))
                        continue;
                longer = part ? str_format("%s%c%s", url, strchr(url, '?') ? '&' : '?', part)
                              : NULL;
                free(url);
                url = longer;
        }
        return url;
}

char *transfer_bare_url(const Exchange *e) {
        const Route *route = e->route;
        const bool bracket = route->address.family && strchr(route->host, ':');
        const size_t length = strcspn(e->rest, "?");

        return str_format("%s://%s%s%s:%u%s%.*s%s", route->tls ? "https" : "http",
                          bracket ? "[" : "", route->host, bracket ? "]" : "", route->port,
                          route->base, (int)length, e->rest,
                          !route->base[0] && length == 0 ? "/" : "");
}

char *transfer_url(const Exchange *e) {
        const Route *route = e->route;
        const size_t length = strcspn(e->rest, "?");
        char *url = transfer_bare_url(e);

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
        e->upgrades = e->chunked = false;
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

int transfer_take_header(Exchange *e, const char *line, size_t length) {
        _cleanup_free_ char *text = NULL, *name = NULL;
        const char *colon;
        int r;

        if (e->answered) { /* A trailer is dropped. libcurl keeps all of them. */
                e->trailers += length;
                return e->trailers > TRAILERS_MAX ? -EPROTO : 0;
        }
        while (length > 0 && (line[length - 1] == '\r' || line[length - 1] == '\n'))
                length--;
        text = strndup(line, length);
        if (!text)
                return -ENOMEM;
        if (length == 0) {
                e->answered = e->status >= 200;
                if (e->status == 204 || e->status == 304)
                        e->answer_length = 0;
                else if (e->chunked) /* Then Content-Length does not count (RFC 9112, section 6.3).
                                      */
                        e->answer_length = LENGTH_UNKNOWN;
                return 0;
        }
        if (str_starts(text, "HTTP/"))
                return transfer_take_status(e, text);
        colon = strchr(text, ':');
        if (!colon && text[0] != ' ' && text[0] != '\t')
                return 0;
        if (!colon)
                return -EPROTO;
        r = transfer_note_header(e, text);
        name = strndup(text, (size_t)(colon - text));
        if (r < 0 || !name)
                return r < 0 ? r : -ENOMEM;
        if (!judge_is_word(name)) /* The program could read another header than holt. */
                return -EPROTO;
        if (header_is_own(name))
                return 0;
        scrub_text(&e->scrub, text);
        if (*colon != ':') /* It was in a credential, such as "USER:PASSWORD". */
                return 0;
        if (header_is(text, "location"))
                return transfer_take_location(e, text);
        return header_is(text, "set-cookie") ? transfer_take_cookie(e, text)
                                             : strlist_add(&e->answer, text);
}
