/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/settings.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/json.h"
#include "base/strings.h"
#include "gateway/fetcher.h"
#include "network/gateway-protocol.h"

/* The document of the settings, which the fetcher's sources point into. It lives as long as the
 * process. */
static JsonDocument *document;

/* The variables of a route that comes later, or NULL: those of the process. */
static const char *settings_variables;

static char *settings_copy(const JsonValue *object, const char *key) {
        return strdup(json_member_text(object, key));
}

/* --- the upstream --- */

/* Reads "HOST[:PORT]" or "[ADDRESS][:PORT]". policy/routes has checked it. */
static int settings_host(Route *route, const char *text, size_t length) {
        const char *close = text[0] == '[' ? memchr(text, ']', length) : NULL;
        const char *start = close ? text + 1 : text, *end = text + length;
        const char *colon = memchr(close ? close : text, ':',
                                   (size_t)(end - (close ? close : text)));
        const size_t size = (size_t)((close ? close : colon ? colon : end) - start);

        route->port = route->tls ? 443 : 80;
        if (colon && net_port_read(colon + 1, (size_t)(end - colon - 1), &route->port) < 0)
                return -EINVAL;
        route->host = strndup(start, size);
        if (!route->host)
                return -ENOMEM;
        (void)net_address_parse(start, size, &route->address);
        return 0;
}

static int settings_upstream(Route *route, const char *url) {
        const char *rest = strstr(url, "://");
        size_t length;

        if (!rest)
                return -EINVAL;
        route->tls = str_starts(url, "https:");
        rest += 3;
        length = strcspn(rest, "/");
        route->base = strdup(rest + length);
        if (!route->base)
                return -ENOMEM;
        for (size_t n = strlen(route->base); n > 0 && route->base[n - 1] == '/'; n--)
                route->base[n - 1] = '\0';
        return settings_host(route, rest, length);
}

/* --- credentials --- */

static const struct {
        const char *key;
        SecretKind kind;
} secret_kinds[] = {
        { "env", SECRET_ENV },
        { "file", SECRET_FILE },
        { "command", SECRET_COMMAND },
};

static const char *settings_variable(const char *name) {
        const size_t length = strlen(name);

        if (!settings_variables)
                return getenv(name);
        for (const char *item = settings_variables; *item; item += strlen(item) + 1)
                if (strncmp(item, name, length) == 0 && item[length] == '=')
                        return item + length + 1;
        return NULL;
}

/* The environment is read now, because it is erased before the gateway serves. */
static int settings_secret(Inject *inject, const JsonValue *source) {
        const char *value = json_string(source);
        int number;

        inject->source = strdup(value ? value : json_string(json_first(source)));
        if (!inject->source)
                return -ENOMEM;
        if (inject->kind == SECRET_ENV) {
                value = settings_variable(inject->source);
                inject->secret = value && *value ? strdup(value) : NULL;
                inject->expires = UINT64_MAX;
                return 0;
        }
        /* The process that reads them exists already, and knows only earlier ones. */
        if (settings_variables)
                return -ENOTSUP;
        number = fetcher_add(source);
        inject->number = (unsigned)number;
        return number < 0 ? number : 0;
}

static int settings_inject(Inject *ret, const JsonValue *object) {
        ret->query = streq(json_member_text(object, "in"), "query");
        ret->name = settings_copy(object, "name");
        ret->prefix = settings_copy(object, "prefix");
        ret->suffix = settings_copy(object, "suffix");
        if (!ret->name || !ret->prefix || !ret->suffix)
                return -ENOMEM;
        if (json_member(object, "user")) {
                ret->user = settings_copy(object, "user");
                if (!ret->user)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < ELEMENTSOF(secret_kinds); i++) {
                const JsonValue *source = json_member(object, secret_kinds[i].key);

                if (!source)
                        continue;
                ret->kind = secret_kinds[i].kind;
                return settings_secret(ret, source);
        }
        return 0;
}

static size_t settings_count(const JsonValue *array) {
        size_t n = 0;

        for (const JsonValue *item = json_first(array); item; item = json_next(item))
                n++;
        return n;
}

static int settings_injects(Route *route, const JsonValue *array) {
        int r = 0;

        route->injects = calloc(settings_count(array) + 1, sizeof(*route->injects));
        if (!route->injects)
                return -ENOMEM;
        for (const JsonValue *item = json_first(array); r == 0 && item; item = json_next(item))
                r = settings_inject(&route->injects[route->injects_count++], item);
        return r;
}

/* --- limits --- */

static int settings_allow(Route *route, const JsonValue *array) {
        route->allow = calloc(settings_count(array) + 1, sizeof(*route->allow));
        if (!route->allow)
                return -ENOMEM;
        for (const JsonValue *item = json_first(array); item; item = json_next(item)) {
                AllowRule *rule = &route->allow[route->allow_count++];

                rule->method = settings_copy(item, "method");
                rule->path = settings_copy(item, "path");
                if (!rule->method || !rule->path)
                        return -ENOMEM;
        }
        return 0;
}

static int settings_tls_hosts(Route *route, const JsonValue *array) {
        int r = 0;

        for (const JsonValue *item = json_first(array); r == 0 && item; item = json_next(item))
                r = strlist_add(&route->tls_hosts, json_string(item));
        return r;
}

static int settings_route(Route *route, const JsonValue *object) {
        int r;

        route->name = settings_copy(object, "name");
        route->body_max = json_member_uint(object, "body");
        route->timeout = json_member_uint(object, "timeout_ms");
        route->requests = json_member_uint(object, "requests");
        route->period = json_member_uint(object, "per_ms") * 1000;
        route->bytes_max = json_member_uint(object, "bytes");
        route->concurrent = json_member_uint(object, "concurrent");
        if (!route->name)
                return -ENOMEM;
        r = settings_upstream(route, json_member_text(object, "upstream"));
        if (r == 0)
                r = settings_tls_hosts(route, json_member(object, "terminate_tls"));
        if (r == 0)
                r = settings_injects(route, json_member(object, "inject"));
        return r == 0 ? settings_allow(route, json_member(object, "allow")) : r;
}

/* --- routes that come and go --- */

int gateway_settings_route(Route *ret, const JsonValue *object, const char *variables) {
        int r;

        settings_variables = variables;
        r = settings_route(ret, object);
        settings_variables = NULL;
        return r;
}

void gateway_settings_forget(Route *route) {
        for (size_t i = 0; i < route->injects_count; i++) {
                Inject *inject = &route->injects[i];

                if (inject->secret)
                        explicit_bzero(inject->secret, strlen(inject->secret));
                free(inject->secret);
                free(inject->name);
                free(inject->prefix);
                free(inject->suffix);
                free(inject->user);
                free(inject->source);
        }
        free(route->injects);
        route->injects = NULL;
        route->injects_count = 0;
}

void gateway_settings_clear(Route *route) {
        gateway_settings_forget(route);
        for (size_t i = 0; i < route->allow_count; i++) {
                free(route->allow[i].method);
                free(route->allow[i].path);
        }
        free(route->allow);
        strlist_clear(&route->tls_hosts);
        free(route->base);
        free(route->host);
        free(route->name);
        *route = (Route){ 0 };
}

/* --- the document --- */

static int settings_routes(Gateway *gateway, const JsonValue *array) {
        int r = 0;

        if (settings_count(array) > GATEWAY_ROUTES_MAX)
                return -E2BIG;
        gateway->routes = calloc(GATEWAY_ROUTES_MAX, sizeof(*gateway->routes));
        if (!gateway->routes)
                return -ENOMEM;
        for (const JsonValue *item = json_first(array); r == 0 && item; item = json_next(item)) {
                Route *route = &gateway->routes[gateway->routes_count++];

                r = settings_route(route, item);
                gateway->terminates |= route->tls_hosts.count > 0;
        }
        return r;
}

static int settings_rules(Gateway *gateway, const JsonValue *array) {
        const char *ignored;
        int r = 0;

        for (const JsonValue *item = json_first(array); r == 0 && item; item = json_next(item))
                r = net_rules_add(&gateway->rules, json_string(item), &ignored);
        return r;
}

static int settings_proxy(Gateway *gateway, const char *url) {
        const char *ignored;

        if (!url)
                return 0;
        gateway->proxy = calloc(1, sizeof(*gateway->proxy));
        return gateway->proxy ? net_upstream_parse(url, gateway->proxy, &ignored) : -ENOMEM;
}

int gateway_settings_read(Gateway *gateway, Error *reterr) {
        _cleanup_free_ char *bytes = malloc(GATEWAY_SETTINGS_MAX);
        ssize_t n = bytes ? recv(gateway->control_fd, bytes, GATEWAY_SETTINGS_MAX, 0) : -1;
        const JsonValue *root;
        int r;

        if (n <= 0)
                return error_set(reterr, ERROR_PROTOCOL, n < 0 ? errno : 0,
                                 "the settings did not arrive");
        r = json_parse(bytes, (size_t)n, "settings", &document, reterr);
        if (r < 0)
                return r;
        root = json_root(document);
        gateway->token = settings_copy(root, "token");
        r = gateway->token ? settings_rules(gateway, json_member(root, "rules")) : -ENOMEM;
        if (r == 0)
                r = settings_proxy(gateway, json_member_string(root, "upstream"));
        if (r == 0)
                r = settings_routes(gateway, json_member(root, "routes"));
        return r < 0 ? error_set(reterr, ERROR_PROTOCOL, -r, "the settings are malformed") : 0;
}
