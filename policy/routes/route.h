/* SPDX-License-Identifier: Apache-2.0 */
/* Routes: services that a sandbox reaches with a credential of the host.
 *
 * A route is an item of the policy field bridge.routes: the name of a known provider, or a JSON
 * object. These functions check objects, and write what holt-gateway needs to know. They open no
 * file and read no secret. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/json-write.h"
#include "base/json.h"

enum {
        ROUTES_MAX = 32,           /* routes of one policy */
        ROUTE_NAME_MAX = 32,       /* bytes of a name, without the NUL */
        ROUTE_ITEMS_MAX = 64,      /* items of each object and array in a route */
        ROUTE_TEXT_MAX = 64 << 10, /* bytes of a route as compact JSON */
        ROUTE_PATH_MAX = 100,      /* bytes of the path of a file inside */
        ROUTE_CONCURRENT_MAX = 64, /* maximum of "concurrent" */
};

/* Checks a route that is an object.
 *
 * where  its place, for errors: "\"ci.json\": $.bridge.routes[0]". The text must end in a JSON
 *        path.
 *
 * Returns 0, -EINVAL (ERROR_POLICY; the error begins with the path of the wrong member), or
 * -ENOMEM. No error contains a value of "header" or "query", since it may be a secret. */
int route_check(const JsonValue *route, const char *where, Error *reterr);

/* Checks a route, and writes it to w as one object in the form that holt-gateway reads. w may
 * contain a part of it after an error. Returns like route_check().
 *
 *   {"name", "upstream", "inject": [...], "allow": [...], "body", "timeout_ms", "requests",
 *    "per_ms", "bytes", "concurrent", "terminate_tls": [...],
 *    "pass": [...]}
 *
 * upstream           URL without a "/" at the end; the host is in lower case.
 * inject             {"in": "header"|"query", "name", "prefix", "suffix"}, and at most one source
 *                    of a secret: "env" (name of a variable), "file" (path, absolute or beginning
 *                    with "~/") or "command" (array of words). The value is prefix, secret and
 *                    suffix. Without a source it is the prefix. With "user", it is "Basic " and
 *                    the base64 form of USER:SECRET. Names of headers are in lower case.
 * allow              {"method", "path"}. A "*" in a path stands for any bytes. The member "method"
 *                    is missing if every method is allowed. The array is never empty: without
 *                    "allow", a route has one item, whose path is a "/" and a "*".
 * body, bytes        bytes; 0 means no limit.
 * timeout_ms         milliseconds.
 * requests, per_ms   at most so many requests in so many milliseconds; both are 0 for no limit.
 * concurrent         1 to ROUTE_CONCURRENT_MAX.
 * terminate_tls      names of hosts, in lower case; missing if the route has none.
 * pass               names of variables, for runner/session/routes.h; may be missing. */
int route_write(const JsonValue *route, const char *where, JsonWriter *w, Error *reterr);

/* Writes a value as compact JSON without a newline. Owned by the caller; NULL if memory is out. */
char *route_text(const JsonValue *value);

/* Copies the name of an item of bridge.routes: a provider's name, or the object as text. Returns
 * 0, or -EINVAL if the item has no valid name. */
int route_text_name(const char *text, char ret[ROUTE_NAME_MAX + 1]);

/* The values of the placeholders in "env" and "files". All are borrowed. */
typedef struct RouteWords {
        const char *url, *token, *address;
} RouteWords;

/* Replaces {url}, {token} and {address}. text has passed route_check(). Owned by the caller; NULL
 * if memory is out. */
char *route_expand(const char *text, const RouteWords *words);

/* Writes the members of the JSON Schema of an item. The caller has opened the object. */
void route_schema_write(JsonWriter *w);

/* A known provider (providers/NAME.json). */
typedef struct RouteProvider {
        const char *name, *description;
        const char *json;   /* the route as compact JSON; route_check() accepts it */
        const char *nearly; /* the reason to refuse a similar name, with a hint at this one */
} RouteProvider;
extern const RouteProvider route_providers[];
extern const size_t route_providers_count;

/* Returns the provider, or NULL. */
const RouteProvider *route_provider(const char *name);
/* Says that no provider has this name, and which one has nearly this name. Returns -EINVAL with a
 * static reason in *ret_why. Its second line, if any, is the cure. */
int route_refuse_name(const char *name, const char **ret_why);
