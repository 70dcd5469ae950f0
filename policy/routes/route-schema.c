/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON Schema of a route. Like that of other fields, it is looser than the check of texts. */
#include "base/strings.h"
#include "policy/routes/route.h"

#define SCHEMA_ENV_NAME "^[A-Za-z_][A-Za-z0-9_]*$"

static void route_schema_text(JsonWriter *w, const char *key, const char *description,
                              const char *pattern) {
        json_write_object(w, key);
        if (description)
                json_write_string(w, "description", description);
        json_write_string(w, "type", "string");
        if (pattern)
                json_write_string(w, "pattern", pattern);
        json_write_end(w);
}

static void route_schema_names(JsonWriter *w) {
        json_write_object(w, NULL);
        json_write_array(w, "enum");
        for (size_t i = 0; i < route_providers_count; i++)
                json_write_string(w, NULL, route_providers[i].name);
        json_write_end(w);
        json_write_end(w);
}

static void route_schema_command(JsonWriter *w) {
        json_write_object(w, "command");
        json_write_string(w, "description", "program and arguments that print the secret");
        json_write_string(w, "type", "array");
        json_write_uint(w, "maxItems", ROUTE_ITEMS_MAX);
        route_schema_text(w, "items", NULL, NULL);
        json_write_end(w);
}

/* Writes the schema of "header" or "query". */
static void route_schema_values(JsonWriter *w, const char *key, const char *description) {
        json_write_object(w, key);
        json_write_string(w, "description", description);
        json_write_string(w, "type", "object");
        json_write_uint(w, "maxProperties", ROUTE_ITEMS_MAX);
        json_write_object(w, "additionalProperties");
        json_write_array(w, "anyOf");
        route_schema_text(w, NULL, "text with up to one {env:NAME} or {file:PATH}", NULL);
        json_write_object(w, NULL);
        json_write_string(w, "type", "object");
        json_write_bool(w, "additionalProperties", false);
        json_write_object(w, "properties");
        route_schema_text(w, "prefix", "text before the secret, such as \"Bearer \"", NULL);
        route_schema_text(w, "basic",
                          "user of HTTP basic authentication, with the secret as password", NULL);
        route_schema_text(w, "env", "variable of holt's own environment", SCHEMA_ENV_NAME);
        route_schema_text(w, "file", "file on the host", "^(~?/)");
        route_schema_command(w);
        json_write_end(w);
        json_write_end(w);
        json_write_end(w);
        json_write_end(w);
        json_write_end(w);
}

static void route_schema_env(JsonWriter *w) {
        json_write_object(w, "env");
        json_write_string(w, "description",
                          "variables to set inside; their values may contain {url}, {token} and "
                          "{address}");
        json_write_string(w, "type", "object");
        json_write_uint(w, "maxProperties", ROUTE_ITEMS_MAX);
        json_write_object(w, "propertyNames");
        json_write_string(w, "pattern", SCHEMA_ENV_NAME);
        json_write_end(w);
        route_schema_text(w, "additionalProperties", NULL, NULL);
        json_write_end(w);
}

static void route_schema_files(JsonWriter *w) {
        json_write_object(w, "files");
        json_write_string(w, "description",
                          "read-only files inside, with the path below /etc and the text of each; "
                          "texts may contain {url}, {token} and {address}. The text of "
                          "/etc/gitconfig is appended to holt's own");
        json_write_string(w, "type", "object");
        json_write_uint(w, "maxProperties", ROUTE_ITEMS_MAX);
        json_write_object(w, "propertyNames");
        json_write_string(w, "pattern", "^/etc/[A-Za-z0-9._/-]+$");
        json_write_end(w);
        route_schema_text(w, "additionalProperties", NULL, NULL);
        json_write_end(w);
}

static void route_schema_list(JsonWriter *w, const char *key, const char *description,
                              const char *pattern) {
        json_write_object(w, key);
        json_write_string(w, "description", description);
        json_write_string(w, "type", "array");
        json_write_uint(w, "maxItems", ROUTE_ITEMS_MAX);
        route_schema_text(w, "items", NULL, pattern);
        json_write_end(w);
}

static void route_schema_lists(JsonWriter *w) {
        route_schema_list(w, "pass",
                          "variables of holt's own environment that commands get; not for secrets",
                          SCHEMA_ENV_NAME);
        route_schema_list(w, "allow",
                          "allowed requests, each PATH or METHOD PATH, where \"*\" stands for any "
                          "characters; default all",
                          "^([A-Z]+ )?/");
        route_schema_list(w, "terminate_tls",
                          "hosts for which holt-gateway terminates TLS, so that programs may also "
                          "use https://HOST; the certificate of their CA is trusted inside",
                          "^[A-Za-z0-9._-]+$");
}

static void route_schema_size(JsonWriter *w, const char *key, const char *description) {
        json_write_object(w, key);
        json_write_string(w, "description", description);
        json_write_array(w, "anyOf");
        json_write_object(w, NULL);
        json_write_string(w, "type", "integer");
        json_write_uint(w, "minimum", 1);
        json_write_end(w);
        route_schema_text(w, NULL, NULL, "^(" BYTES_PATTERN ")$");
        json_write_end(w);
        json_write_end(w);
}

static void route_schema_limits(JsonWriter *w) {
        route_schema_size(w, "body", "maximum size of a request's body; default 64MiB");
        route_schema_text(w, "timeout", "maximum time of a request; default 10m",
                          "^(" DURATION_PATTERN ")$");
        route_schema_text(w, "requests", "maximum number of requests in a time, such as 60/1m",
                          "^[0-9]+/" DURATION_PATTERN "$");
        route_schema_size(w, "bytes", "maximum bytes of all requests and responses together");
        json_write_object(w, "concurrent");
        json_write_string(w, "description", "maximum number of requests at a time; default 16");
        json_write_string(w, "type", "integer");
        json_write_uint(w, "minimum", 1);
        json_write_uint(w, "maximum", ROUTE_CONCURRENT_MAX);
        json_write_end(w);
}

static void route_schema_object(JsonWriter *w) {
        json_write_object(w, NULL);
        json_write_string(w, "type", "object");
        json_write_bool(w, "additionalProperties", false);
        json_write_array(w, "required");
        json_write_string(w, NULL, "name");
        json_write_string(w, NULL, "upstream");
        json_write_end(w);
        json_write_object(w, "properties");
        route_schema_text(w, "name", "name of the route, which is the first part of its path",
                          "^[a-z][a-z0-9-]{0,31}$");
        route_schema_text(w, "description", "description for people", NULL);
        route_schema_text(w, "upstream", "URL of the service", "^https?://");
        route_schema_values(w, "header", "headers to set in each request, with their values");
        route_schema_values(w, "query", "query parameters to set in each request");
        route_schema_env(w);
        route_schema_files(w);
        route_schema_lists(w);
        route_schema_limits(w);
        json_write_end(w);
        json_write_end(w);
}

void route_schema_write(JsonWriter *w) {
        json_write_array(w, "anyOf");
        route_schema_names(w);
        route_schema_object(w);
        json_write_end(w);
}
