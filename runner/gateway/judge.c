/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/strings.h"
#include "base/time.h"

void verdict_set(Verdict *verdict, unsigned status, const char *fmt, ...) {
        va_list args;

        va_start(args, fmt);
        (void)vsnprintf(verdict->reason, sizeof(verdict->reason), fmt, args);
        va_end(args);
        verdict->status = status;
}

/* --- the token --- */

/* A client that knows only a user and a password sends the token in one of them, in base64. */
static bool judge_basic_has_token(const Gateway *gateway, const char *value) {
        static const char basic[] = "Basic ";
        _cleanup_free_ char *login = NULL;
        size_t ignored;

        return strncasecmp(value, basic, strlen(basic)) == 0 &&
               base64_decode(value + strlen(basic), &login, &ignored) == 0 &&
               strstr(login, gateway->token);
}

bool judge_has_token(const Gateway *gateway, const char *value) {
        return value && (strstr(value, gateway->token) || judge_basic_has_token(gateway, value));
}

typedef struct TokenSearch {
        const Gateway *gateway;
        bool found;
        bool malformed; /* A header could be read in two ways. */
} TokenSearch;

/* Whether it is a token as in RFC 9110, section 5.6.2. A server may ignore a space at the end of a
 * name, and would then read a header that the gateway replaces. */
static bool judge_is_word(const char *text) {
        static const char others[] = "!#$%&'*+-.^_`|~";

        for (const char *c = text; *c; c++)
                if (!((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
                      (*c >= 'A' && *c <= 'Z') || strchr(others, *c)))
                        return false;
        return text[0] != '\0';
}

static bool judge_is_plain(const char *value) {
        for (; *value; value++)
                if (((unsigned char)*value < 0x20 && *value != '\t') || *value == 0x7f)
                        return false;
        return true;
}

static enum MHD_Result judge_look_for_token(void *data, enum MHD_ValueKind kind, const char *key,
                                            const char *value) {
        TokenSearch *search = data;

        (void)kind;
        search->malformed |= !judge_is_word(key) || (value && !judge_is_plain(value));
        search->found |= judge_has_token(search->gateway, value);
        return MHD_YES;
}

/* --- the path --- */

static int judge_digit(char digit) {
        static const char digits[] = "0123456789abcdef";
        const char *found = digit ? strchr(digits, digit | 0x20) : NULL;

        return found ? (int)(found - digits) : -1;
}

/* Decodes %XX. Returns NULL without memory, or for a path with control characters. */
static char *judge_decode(const char *path, size_t length) {
        char *text = malloc(length + 1);
        size_t n = 0;

        for (size_t i = 0; text && i < length; i++) {
                unsigned char byte = (unsigned char)path[i];

                if (byte == '%' && i + 2 < length && judge_digit(path[i + 1]) >= 0 &&
                    judge_digit(path[i + 2]) >= 0) {
                        byte = (unsigned char)(judge_digit(path[i + 1]) << 4 |
                                               judge_digit(path[i + 2]));
                        i += 2;
                }
                if (byte < 0x20 || byte == 0x7f) {
                        free(text);
                        return NULL;
                }
                text[n++] = (char)byte;
        }
        if (text)
                text[n] = '\0';
        return text;
}

/* Whether an upstream could take the path for another one: a part of it is "." or "..". */
static bool judge_is_ambiguous(const char *path, size_t length) {
        _cleanup_free_ char *text = judge_decode(path, length);

        for (const char *part = text; part && *part; part += strspn(part, "/\\")) {
                const size_t size = strcspn(part, "/\\");

                if ((size == 1 && part[0] == '.') || (size == 2 && strncmp(part, "..", 2) == 0))
                        return true;
                part += size;
        }
        return !text || strchr(path, '#');
}

/* Whether the pattern, in which '*' stands for any characters, matches the whole text. */
static bool judge_matches(const char *pattern, const char *text, size_t length) {
        const char *star = NULL, *end = text + length, *again = text;

        while (text < end)
                if (*pattern == '*') {
                        star = pattern++;
                        again = text;
                } else if (*pattern == *text) {
                        pattern++;
                        text++;
                } else if (star) {
                        pattern = star + 1;
                        text = ++again;
                } else {
                        return false;
                }
        while (*pattern == '*')
                pattern++;
        return *pattern == '\0';
}

/* A rule for GET allows HEAD, too. */
static bool judge_allows(const Route *route, const char *method, const char *path, size_t length) {
        const char *asked = streq(method, "HEAD") ? "GET" : method;

        for (size_t i = 0; i < route->allow_count; i++)
                if ((!route->allow[i].method[0] || streq(route->allow[i].method, asked) ||
                     streq(route->allow[i].method, method)) &&
                    judge_matches(route->allow[i].path, path, length))
                        return true;
        return route->allow_count == 0;
}

/* --- the request --- */

bool judge_is_tls(struct MHD_Connection *connection) {
        return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION) != NULL;
}

/* Returns the route of the host for which the gateway has terminated TLS. */
static Route *judge_find_host(const Gateway *gateway, struct MHD_Connection *connection) {
        const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                       MHD_HTTP_HEADER_HOST);
        const size_t length = host ? strcspn(host, ":") : 0;

        for (size_t i = 0; i < gateway->routes_count; i++)
                for (size_t k = 0; k < gateway->routes[i].tls_hosts.count; k++) {
                        const char *name = gateway->routes[i].tls_hosts.items[k];

                        if (strlen(name) == length && strncasecmp(name, host, length) == 0)
                                return &gateway->routes[i];
                }
        return NULL;
}

/* Returns the route that the target names. */
static Route *judge_find_route(const Gateway *gateway, const char *target, const char **ret_rest) {
        const size_t length = target[0] == '/' ? strcspn(target + 1, "/?") : 0;

        for (size_t i = 0; i < gateway->routes_count; i++)
                if (strlen(gateway->routes[i].name) == length &&
                    strncmp(gateway->routes[i].name, target + 1, length) == 0) {
                        *ret_rest = target + 1 + length;
                        return &gateway->routes[i];
                }
        return NULL;
}

static void judge_no_route(const Gateway *gateway, Verdict *ret) {
        size_t length;

        verdict_set(ret, 404, "no route has this name; the routes are");
        for (size_t i = 0; i < gateway->routes_count; i++) {
                length = strlen(ret->reason);
                (void)snprintf(ret->reason + length, sizeof(ret->reason) - length, "%s /%s",
                               i ? "," : "", gateway->routes[i].name);
        }
}

/* Checks the limits, and counts the request. */
static void judge_limits(Route *route, Verdict *ret) {
        if (route->concurrent && route->running >= route->concurrent)
                verdict_set(ret, 429, "this route carries at most %u requests at once",
                            (unsigned)route->concurrent);
        else if (route->bytes_max && route->bytes >= route->bytes_max)
                verdict_set(ret, 429, "this route has carried all the bytes that its limit allows");
        else if (route->requests && !credit_take(&route->credit, (unsigned)route->requests,
                                                 route->period / route->requests, time_now_usec()))
                verdict_set(ret, 429, "this route carries at most %u requests in %u ms",
                            (unsigned)route->requests, (unsigned)(route->period / 1000));
}

void judge_request(Gateway *gateway, struct MHD_Connection *connection, const char *method,
                   const char *target, Route **ret_route, const char **ret_rest, Verdict *ret) {
        TokenSearch search = { .gateway = gateway };
        size_t length;

        *ret = (Verdict){ 0 };
        if (judge_is_tls(connection)) {
                *ret_route = target[0] == '/' ? judge_find_host(gateway, connection) : NULL;
                *ret_rest = target;
        } else {
                *ret_route = judge_find_route(gateway, target, ret_rest);
        }
        if (!*ret_route && judge_is_tls(connection))
                return verdict_set(ret, 404, "no route terminates TLS for this host");
        if (!*ret_route)
                return judge_no_route(gateway, ret);
        (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, judge_look_for_token, &search);
        if (!search.found)
                return verdict_set(ret, 401,
                                   "the request has no token; a client sends it in place of the "
                                   "API key");
        if (search.malformed || !judge_is_word(method))
                return verdict_set(ret, 400, "the method or a header is malformed");
        if (streq(method, "CONNECT") || streq(method, "TRACE"))
                return verdict_set(ret, 405, "a route carries no requests of this method");
        length = strcspn(*ret_rest, "?");
        if (judge_is_ambiguous(*ret_rest, length))
                return verdict_set(ret, 400,
                                   "the path is ambiguous: it has \".\" or \"..\" as a "
                                   "part, or a control character");
        if (!judge_allows(*ret_route, method, length ? *ret_rest : "/", length ? length : 1))
                return verdict_set(ret, 403, "the route does not allow this method and path");
        judge_limits(*ret_route, ret);
}

bool judge_forbids(const Gateway *gateway, const NetAddress *address, uint16_t port,
                   const char **ret_why) {
        *ret_why = net_address_forbidden(address);
        return *ret_why && !net_rules_find_address(&gateway->rules, address, port);
}
