/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a route: allowed requests, sizes, times and budgets. */
#include <errno.h>
#include <string.h>

#include "base/strings.h"
#include "policy/routes/route-internal.h"

enum {
        ROUTE_BODY = 64 << 20,     /* bytes, without "body" */
        ROUTE_TIMEOUT = 600000,    /* milliseconds, without "timeout" */
        ROUTE_CONCURRENT = 16,     /* without "concurrent" */
        ROUTE_COUNT_MAX = 1 << 30, /* maximum of requests in a time */
};

/* --- allowed requests --- */

static bool route_allow_path_valid(const char *path) {
        if (path[0] != '/')
                return false;
        for (; *path; path++)
                if (*path <= ' ' || *path == 0x7f || *path == '?' || *path == '#')
                        return false;
        return true;
}

static int route_allow_write(const RouteReader *reader, const JsonValue *item, const char *path) {
        const char *text = json_string(item), *blank = text ? strchr(text, ' ') : NULL;
        const char *pattern = blank ? blank + 1 : text;
        _cleanup_free_ char *method = NULL;

        if (!text)
                return route_fail_type(reader, item, path, "a string");
        if (blank &&
            (blank == text || strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != (size_t)(blank - text)))
                return route_fail(reader, path,
                                  "has no method in capital letters; write it like \"POST "
                                  "/v1/*\"");
        if (!route_allow_path_valid(pattern))
                return route_fail(reader, path,
                                  "has no path of ASCII characters that begins with \"/\" and has "
                                  "no \"?\"; write it like \"POST /v1/*\"");
        json_write_object(reader->w, NULL);
        if (blank) {
                method = strndup(text, (size_t)(blank - text));
                if (!method)
                        return error_oom(reader->reterr);
                json_write_string(reader->w, "method", method);
        }
        json_write_string(reader->w, "path", pattern);
        json_write_end(reader->w);
        return 0;
}

static void route_allow_write_all(JsonWriter *w) {
        json_write_object(w, NULL);
        json_write_string(w, "path", "/*");
        json_write_end(w);
}

int route_read_allow(const RouteReader *reader, const JsonValue *value, const char *path) {
        int r = 0;

        json_write_array(reader->w, "allow");
        if (!value)
                route_allow_write_all(reader->w);
        else
                r = route_each(reader, value, path, JSON_ARRAY, route_allow_write);
        if (r < 0)
                return r;
        if (value && !json_first(value))
                return route_fail(reader, path,
                                  "allows nothing; to allow every request, remove \"allow\"");
        json_write_end(reader->w);
        return 0;
}

/* --- sizes and times --- */

static int route_limit_read_size(const RouteReader *reader, const JsonValue *value,
                                 const char *path, uint64_t *ret) {
        uint64_t size = 0;
        int r;

        if (json_type(value) == JSON_NUMBER)
                r = json_uint(value, JSON_INTEGER_MAX, &size);
        else if (json_string(value))
                r = str_to_bytes(json_string(value), &size);
        else
                return route_fail_type(reader, value, path,
                                       "a size like \"32MiB\" or a number of bytes");
        if (r < 0 || size == 0 || size > JSON_INTEGER_MAX)
                return route_fail(reader, path,
                                  "is not a size of at least one byte; write it like 64KiB, "
                                  "512MiB or 2GiB");
        *ret = size;
        return 0;
}

/* Reads a time of at least a millisecond. */
static int route_limit_read_time(const char *text, uint64_t *ret_ms) {
        uint64_t usec;
        int r = str_to_usec(text, &usec);

        if (r < 0 || usec < 1000)
                return -EINVAL;
        *ret_ms = usec / 1000;
        return 0;
}

int route_read_body(const RouteReader *reader, const JsonValue *value, const char *path) {
        uint64_t size = ROUTE_BODY;
        int r = value ? route_limit_read_size(reader, value, path, &size) : 0;

        json_write_uint(reader->w, "body", size);
        return r;
}

int route_read_bytes(const RouteReader *reader, const JsonValue *value, const char *path) {
        uint64_t size = 0;
        int r = value ? route_limit_read_size(reader, value, path, &size) : 0;

        json_write_uint(reader->w, "bytes", size);
        return r;
}

int route_read_timeout(const RouteReader *reader, const JsonValue *value, const char *path) {
        uint64_t time = ROUTE_TIMEOUT;

        if (value && !json_string(value))
                return route_fail_type(reader, value, path, "a time like \"10m\" or \"90s\"");
        if (value && route_limit_read_time(json_string(value), &time) < 0)
                return route_fail(reader, path,
                                  "is not a time of at least 1ms; write it like 500ms, 30s, 10m or "
                                  "2h");
        json_write_uint(reader->w, "timeout_ms", time);
        return 0;
}

/* --- budgets --- */

int route_read_requests(const RouteReader *reader, const JsonValue *value, const char *path) {
        const char *text = json_string(value), *slash = text ? strchr(text, '/') : NULL;
        _cleanup_free_ char *number = slash ? strndup(text, (size_t)(slash - text)) : NULL;
        uint64_t count = 0, time = 0;

        if (value && !text)
                return route_fail_type(reader, value, path, "a text like \"60/1m\"");
        if (slash && !number)
                return error_oom(reader->reterr);
        if (value && (!slash || str_to_uint(number, ROUTE_COUNT_MAX, &count) < 0 || count == 0 ||
                      route_limit_read_time(slash + 1, &time) < 0))
                return route_fail(reader, path,
                                  "is not a number of requests and a time; write it like 60/1m");
        json_write_uint(reader->w, "requests", count);
        json_write_uint(reader->w, "per_ms", time);
        return 0;
}

int route_read_concurrent(const RouteReader *reader, const JsonValue *value, const char *path) {
        uint64_t count = ROUTE_CONCURRENT;

        if (value && json_type(value) != JSON_NUMBER)
                return route_fail_type(reader, value, path, "a number");
        if (value && (json_uint(value, ROUTE_CONCURRENT_MAX, &count) < 0 || count == 0))
                return route_fail(reader, path, "is not a whole number from 1 to %d",
                                  ROUTE_CONCURRENT_MAX);
        json_write_uint(reader->w, "concurrent", count);
        return 0;
}
