/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/routes/route.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/strings.h"
#include "policy/routes/route-internal.h"

/* --- errors and walks, for all readers --- */

int route_fail(const RouteReader *reader, const char *path, const char *fmt, ...) {
        _cleanup_free_ char *text = NULL;
        va_list args;

        va_start(args, fmt);
        text = str_vformat(fmt, args);
        va_end(args);
        if (!text)
                return error_oom(reader->reterr);
        return error_set(reader->reterr, ERROR_POLICY, 0, "%s: %s", path, text);
}

int route_fail_type(const RouteReader *reader, const JsonValue *value, const char *path,
                    const char *expected) {
        return route_fail(reader, path, "expected %s, not %s", expected,
                          json_type_name(json_type(value)));
}

int route_each(const RouteReader *reader, const JsonValue *value, const char *path, JsonType type,
               int (*read)(const RouteReader *reader, const JsonValue *item, const char *path)) {
        size_t i = 0;

        if (json_type(value) != type)
                return route_fail_type(reader, value, path, json_type_name(type));
        for (const JsonValue *item = json_first(value); item; item = json_next(item)) {
                _cleanup_free_ char *place = type == JSON_OBJECT
                                                     ? json_path_key(path, json_key(item))
                                                     : json_path_index(path, i);
                int r;

                if (!place)
                        return error_oom(reader->reterr);
                if (i++ == ROUTE_ITEMS_MAX)
                        return route_fail(reader, path, "has more than %d items", ROUTE_ITEMS_MAX);
                r = read(reader, item, place);
                if (r < 0)
                        return r;
        }
        return 0;
}

const char *route_brace(const char *text) {
        for (; (text = strchr(text, '{')); text++)
                if ((text[1] | 0x20) >= 'a' && (text[1] | 0x20) <= 'z')
                        return text;
        return NULL;
}

bool route_env_name_valid(const char *text, size_t length) {
        static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

        return length > 0 && strspn(text, all) >= length && (text[0] < '0' || text[0] > '9');
}

bool route_text_plain(const char *text) {
        for (; *text; text++)
                if (((unsigned char)*text < 0x20 && *text != '\t') || *text == 0x7f)
                        return false;
        return true;
}

/* --- members --- */

static bool route_name_valid(const char *name) {
        size_t length = strlen(name);

        return length <= ROUTE_NAME_MAX && name[0] >= 'a' && name[0] <= 'z' &&
               strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static int route_read_name(const RouteReader *reader, const JsonValue *value, const char *path) {
        const char *name = json_string(value);

        if (!value)
                return route_fail(reader, path, "the name of the route is missing");
        if (!name)
                return route_fail_type(reader, value, path, "a string");
        if (!route_name_valid(name))
                return route_fail(reader, path,
                                  "a name has up to %d lower-case letters, digits and \"-\", and "
                                  "begins with a letter",
                                  ROUTE_NAME_MAX);
        json_write_string(reader->w, "name", name);
        return 0;
}

static int route_read_description(const RouteReader *reader, const JsonValue *value,
                                  const char *path) {
        if (!value)
                return 0;
        if (!json_string(value))
                return route_fail_type(reader, value, path, "a string");
        return route_text_plain(json_string(value))
                       ? 0
                       : route_fail(reader, path, "contains a control character");
}

/* Checks a text for the inside. */
static int route_read_text(const RouteReader *reader, const JsonValue *item, const char *path) {
        const char *text = json_string(item);

        if (!text)
                return route_fail_type(reader, item, path, "a string");
        for (const char *at = text; (at = route_brace(at)); at++) {
                if (str_starts(at, "{url}") || str_starts(at, "{token}") ||
                    str_starts(at, "{address}"))
                        continue;
                return route_fail(reader, path,
                                  "a \"{\" before a letter begins a placeholder, and this one is "
                                  "unknown; write {url}, {token} or {address}");
        }
        return 0;
}

static int route_read_env_item(const RouteReader *reader, const JsonValue *item, const char *path) {
        const char *name = json_key(item);
        int r;

        if (!route_env_name_valid(name, strlen(name)))
                return route_fail(reader, path,
                                  "is not a valid variable name (letters, digits and _, not "
                                  "starting with a digit)");
        r = route_read_text(reader, item, path);
        return r < 0 || route_text_plain(json_string(item))
                       ? r
                       : route_fail(reader, path, "contains a control character");
}

static int route_read_pass_item(const RouteReader *reader, const JsonValue *item,
                                const char *path) {
        const char *name = json_string(item);

        if (!name)
                return route_fail_type(reader, item, path, "a string");
        if (!route_env_name_valid(name, strlen(name)))
                return route_fail(reader, path,
                                  "is not a valid variable name (letters, digits and _, not "
                                  "starting with a digit)");
        json_write_string(reader->w, NULL, name);
        return 0;
}

int route_read_pass(const RouteReader *reader, const JsonValue *value, const char *path) {
        int r;

        if (!value)
                return 0;
        json_write_array(reader->w, "pass");
        r = route_each(reader, value, path, JSON_ARRAY, route_read_pass_item);
        if (r == 0)
                json_write_end(reader->w);
        return r;
}

/* Whether the path lies below /etc, and has only parts with letters, digits and "._-". */
static bool route_file_path_valid(const char *path) {
        static const char all[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

        if (!str_starts(path, "/etc/") || strlen(path) > ROUTE_PATH_MAX)
                return false;
        for (path += 4; *path == '/';) {
                const size_t length = strspn(path + 1, all);

                if (length == 0 || strspn(path + 1, ".") >= length)
                        return false;
                path += 1 + length;
        }
        return *path == '\0';
}

static int route_read_file(const RouteReader *reader, const JsonValue *item, const char *path) {
        return route_file_path_valid(json_key(item))
                       ? route_read_text(reader, item, path)
                       : route_fail(reader, path,
                                    "is not the path of a file below /etc, such as /etc/pip.conf");
}

int route_read_env(const RouteReader *reader, const JsonValue *value, const char *path) {
        return value ? route_each(reader, value, path, JSON_OBJECT, route_read_env_item) : 0;
}

int route_read_files(const RouteReader *reader, const JsonValue *value, const char *path) {
        return value ? route_each(reader, value, path, JSON_OBJECT, route_read_file) : 0;
}

/* "header" and "query" share the array "inject", so they are next to each other. */
static const struct {
        const char *key;
        int (*read)(const RouteReader *reader, const JsonValue *value, const char *path);
} route_members[] = {
        { "name", route_read_name },
        { "description", route_read_description },
        { "upstream", route_read_upstream },
        { "header", route_read_header },
        { "query", route_read_query },
        { "allow", route_read_allow },
        { "body", route_read_body },
        { "timeout", route_read_timeout },
        { "requests", route_read_requests },
        { "bytes", route_read_bytes },
        { "concurrent", route_read_concurrent },
        { "terminate_tls", route_read_terminate_tls },
        { "env", route_read_env },
        { "pass", route_read_pass },
        { "files", route_read_files },
};

static int route_fail_unknown(const RouteReader *reader, const char *where, const char *key) {
        _cleanup_free_ char *path = json_path_key(where, key);
        Nearest nearest = { .word = key };
        char allowed[240] = "";
        int r;

        for (size_t i = 0; i < ELEMENTSOF(route_members); i++) {
                size_t length = strlen(allowed);

                (void)snprintf(allowed + length, sizeof(allowed) - length, "%s%s", i ? ", " : "",
                               route_members[i].key);
                nearest_try(&nearest, route_members[i].key);
        }
        if (!path)
                return error_oom(reader->reterr);
        r = route_fail(reader, path, "unknown member%s%s%s",
                       nearest.best ? "; did you mean \"" : "", nearest.best ? nearest.best : "",
                       nearest.best ? "\"?" : "");
        return error_cure(reader->reterr, r, "Allowed in a route: %s.", allowed);
}

static int route_check_keys(const RouteReader *reader, const char *where) {
        for (const JsonValue *member = json_first(reader->route); member;
             member = json_next(member)) {
                bool known = false;

                for (size_t i = 0; i < ELEMENTSOF(route_members); i++)
                        known = known || streq(json_key(member), route_members[i].key);
                if (!known)
                        return route_fail_unknown(reader, where, json_key(member));
        }
        return 0;
}

/* --- whole routes --- */

int route_write(const JsonValue *route, const char *where, JsonWriter *w, Error *reterr) {
        const RouteReader reader = { .route = route, .w = w, .reterr = reterr };
        int r;

        if (json_type(route) != JSON_OBJECT)
                return route_fail_type(&reader, route, where, "an object");
        r = route_check_keys(&reader, where);
        json_write_object(w, NULL);
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(route_members); i++) {
                const char *key = route_members[i].key;
                _cleanup_free_ char *path = json_path_key(where, key);

                r = path ? route_members[i].read(&reader, json_member(route, key), path)
                         : error_oom(reterr);
        }
        if (r == 0)
                json_write_end(w);
        return r;
}

int route_check(const JsonValue *route, const char *where, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter ignored = { 0 };
        int r = route_write(route, where, &ignored, reterr);

        return r == 0 && ignored.error < 0 ? error_oom(reterr) : r;
}

char *route_text(const JsonValue *value) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_copy(&w, NULL, value);
        if (json_write_finish(&w) < 0)
                return NULL;
        w.data[w.length - 1] = '\0'; /* the newline */
        return TAKE_PTR(w.data);
}

int route_text_name(const char *text, char ret[ROUTE_NAME_MAX + 1]) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        const char *name = text;

        if (text[0] == '{') {
                if (json_parse(text, strlen(text), "route", &document, NULL) < 0)
                        return -EINVAL;
                name = json_member_text(json_root(document), "name");
        }
        if (!route_name_valid(name))
                return -EINVAL;
        memcpy(ret, name, strlen(name) + 1);
        return 0;
}

/* Returns the value of the placeholder at `at`, and writes its length with the braces. */
static const char *route_word(const char *at, const RouteWords *words, size_t *ret_length) {
        *ret_length = strcspn(at, "}") + 1;
        if (str_starts(at, "{url}"))
                return words->url;
        return str_starts(at, "{token}") ? words->token : words->address;
}

char *route_expand(const char *text, const RouteWords *words) {
        char *all = strdup("");

        while (all) {
                const char *at = route_brace(text), *value = "";
                size_t length = 0;
                char *before = all;

                if (at)
                        value = route_word(at, words, &length);
                all = str_format("%s%.*s%s", before, (int)(at ? at - text : (long)strlen(text)),
                                 text, value);
                free(before);
                if (!at)
                        break;
                text = at + length;
        }
        return all;
}
