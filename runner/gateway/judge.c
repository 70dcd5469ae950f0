/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/strings.h"
#include "base/time.h"

enum { DECODE_TURNS = 4 };

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
        bool malformed;      /* A header could be read in two ways. */
        bool length, coding; /* The header that says where the body ends was there. */
} TokenSearch;

bool judge_is_word(const char *text) {
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

static void judge_note_once(TokenSearch *search, bool *there, const char *key, const char *name) {
        if (strcasecmp(key, name) != 0)
                return;
        search->malformed |= *there;
        *there = true;
}

static enum MHD_Result judge_look_for_token(void *data, enum MHD_ValueKind kind, const char *key,
                                            const char *value) {
        TokenSearch *search = data;

        (void)kind;
        search->malformed |= !judge_is_word(key) || (value && !judge_is_plain(value));
        search->found |= judge_has_token(search->gateway, value);
        judge_note_once(search, &search->length, key, MHD_HTTP_HEADER_CONTENT_LENGTH);
        judge_note_once(search, &search->coding, key, MHD_HTTP_HEADER_TRANSFER_ENCODING);
        return MHD_YES;
}

/* --- the path --- */

static int judge_digit(char digit) {
        static const char digits[] = "0123456789abcdef";
        const char *found = digit ? strchr(digits, digit | 0x20) : NULL;

        return found ? (int)(found - digits) : -1;
}

/* Decodes %XX in place. Returns whether there was one. */
static bool judge_decode(char *text) {
        char *to = text;
        bool any = false;

        for (const char *from = text; *from; from++) {
                int high = *from == '%' ? judge_digit(from[1]) : -1;
                int low = high >= 0 ? judge_digit(from[2]) : -1;

                *to++ = low >= 0 ? (char)(high << 4 | low) : *from;
                from += low >= 0 ? 2 : 0;
                any |= low >= 0;
                if (to[-1] == '\0') /* A control character ends the text, which is refused. */
                        to[-1] = 1;
        }
        *to = '\0';
        return any;
}

/* Whether a part of the path is "." or "..". Some servers take what follows ";" for a parameter of
 * the part. */
static bool judge_has_dots(const char *path) {
        for (const char *part = path; *part; part += strspn(part, "/\\")) {
                const size_t size = strcspn(part, "/\\"), length = strcspn(part, "/\\;");

                if ((length == 1 && part[0] == '.') || (length == 2 && strncmp(part, "..", 2) == 0))
                        return true;
                part += size;
        }
        return false;
}

/* Some servers and their proxies decode more than once. */
bool judge_is_ambiguous(const char *path, size_t length) {
        _cleanup_free_ char *text = strndup(path, length);
        bool again = true;

        for (int i = 0; text && again && i < DECODE_TURNS; i++) {
                again = judge_decode(text);
                for (const char *c = text; *c; c++)
                        if ((unsigned char)*c < 0x20 || *c == 0x7f)
                                return true;
                if (judge_has_dots(text))
                        return true;
        }
        return !text || strchr(path, '#');
}

bool judge_query_names(const char *part, const char *name) {
        _cleanup_free_ char *text = strndup(part, strcspn(part, "&"));

        if (!text)
                return true;
        (void)judge_decode(text);
        for (const char *at = text; at; at = strchr(at, ';')) {
                at += *at == ';';
                at += strspn(at, " +"); /* PHP ignores these. */
                if (strncasecmp(at, name, strlen(name)) == 0 &&
                    strchr("=;", at[strlen(name)])) /* or the end */
                        return true;
        }
        return false;
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
                for (size_t k = 0;
                     !gateway->routes[i].removed && k < gateway->routes[i].tls_hosts.count; k++) {
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
                if (!gateway->routes[i].removed && strlen(gateway->routes[i].name) == length &&
                    strncmp(gateway->routes[i].name, target + 1, length) == 0) {
                        *ret_rest = target + 1 + length;
                        return &gateway->routes[i];
                }
        return NULL;
}

static void judge_no_route(const Gateway *gateway, Verdict *ret) {
        const char *before = "; the routes are";

        verdict_set(ret, 404, "no route has this name");
        for (size_t i = 0; i < gateway->routes_count; i++) {
                const size_t length = strlen(ret->reason);

                if (gateway->routes[i].removed)
                        continue;
                (void)snprintf(ret->reason + length, sizeof(ret->reason) - length, "%s /%s", before,
                               gateway->routes[i].name);
                before = ",";
        }
}

bool judge_bytes(const Route *route, uint64_t more, Verdict *ret) {
        if (!route->bytes_max ||
            (route->bytes <= route->bytes_max && more <= route->bytes_max - route->bytes))
                return true;
        verdict_set(ret, 429, "the route would carry more bytes than its limit allows");
        return false;
}

/* Refuses a request, and writes the period as in the policy: "1m". */
static void judge_refuse_requests(const Route *route, Verdict *ret) {
        static const struct {
                unsigned ms;
                const char *name;
        } units[] = { { 3600000, "h" }, { 60000, "m" }, { 1000, "s" }, { 1, "ms" } };
        const uint64_t ms = route->period / 1000;
        size_t i = 0;

        while (ms % units[i].ms != 0)
                i++;
        verdict_set(ret, 429, "this route carries at most %u requests in %llu%s",
                    (unsigned)route->requests, (unsigned long long)(ms / units[i].ms),
                    units[i].name);
}

/* Checks the limits, and counts the request. */
static void judge_limits(Route *route, Verdict *ret) {
        if (route->concurrent && route->running >= route->concurrent)
                verdict_set(ret, 429, "this route carries at most %u requests at once",
                            (unsigned)route->concurrent);
        else if (judge_bytes(route, 1, ret) && route->requests &&
                 !credit_take(&route->credit, (unsigned)route->requests,
                              route->period / route->requests, time_now_usec()))
                judge_refuse_requests(route, ret);
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

/* Whether the name means the loopback (RFC 6761, section 6.3), and the address is one. Such an
 * upstream names its address itself, as http://127.0.0.1 does. */
static bool judge_is_localhost(const char *host, const NetAddress *address) {
        const char *last = strrchr(host, '.');

        return streq(last ? last + 1 : host, "localhost") && net_address_is_loopback(address);
}

bool judge_forbids(const Gateway *gateway, const Route *route, const NetAddress *address,
                   const char **ret_why) {
        *ret_why = net_address_forbidden(address);
        return *ret_why && !judge_is_localhost(route->host, address) &&
               !net_rules_find_address(&gateway->rules, address, route->port);
}
