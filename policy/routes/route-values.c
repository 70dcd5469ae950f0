/* SPDX-License-Identifier: Apache-2.0 */
/* The values of headers and query parameters: literal text, and the source of a secret. */
#include <string.h>

#include "base/strings.h"
#include "policy/routes/route-internal.h"

static const char value_name_env[] = "is not a valid variable name (letters, digits and _, not "
                                     "starting with a digit)";
static const char value_name_file[] = "is not a path that is absolute or begins with \"~/\"";
static const char value_control[] = "contains a control character";

/* --- sources --- */

static bool route_value_file_valid(const char *path) {
        return (path[0] == '/' || str_starts(path, "~/")) && route_text_plain(path) &&
               !strchr(path, '\t');
}

static int route_value_write_source(const RouteReader *reader, const char *key, const char *text,
                                    const char *path) {
        const bool env = streq(key, "env");

        if (!(env ? route_env_name_valid(text, strlen(text)) : route_value_file_valid(text)))
                return route_fail(reader, path, "%s %s", key,
                                  env ? value_name_env : value_name_file);
        json_write_string(reader->w, key, text);
        return 0;
}

static int route_value_write_word(const RouteReader *reader, const JsonValue *item,
                                  const char *path) {
        if (!json_string(item))
                return route_fail_type(reader, item, path, "a string");
        /* Newlines are common in words of a shell. */
        if (strchr(json_string(item), 0x7f))
                return route_fail(reader, path, "%s", value_control);
        json_write_string(reader->w, NULL, json_string(item));
        return 0;
}

static int route_value_write_command(const RouteReader *reader, const JsonValue *value,
                                     const char *path) {
        const char *program;
        int r;

        json_write_array(reader->w, "command");
        r = route_each(reader, value, path, JSON_ARRAY, route_value_write_word);
        if (r < 0)
                return r;
        json_write_end(reader->w);
        program = json_string(json_first(value));
        if (!program || !*program)
                return route_fail(reader, path, "the program is missing");
        /* holt-gateway works in the root directory. */
        return program[0] == '/' || !strchr(program, '/')
                       ? 0
                       : route_fail(reader, path,
                                    "the program has a relative path; write an absolute one");
}

/* --- texts --- */

static int route_value_fail_placeholder(const RouteReader *reader, const char *path) {
        return route_fail(reader, path,
                          "a \"{\" before a letter begins a placeholder, and this one is unknown; "
                          "write {env:NAME} or {file:PATH}");
}

/* Writes a text with up to one placeholder. */
static int route_value_write_text(const RouteReader *reader, const char *text, const char *path) {
        const char *at = route_brace(text), *end = at ? strchr(at, '}') : NULL;
        const char *key = !end ? NULL : str_starts(at, "{env:") ? "env" : "file";
        _cleanup_free_ char *prefix = NULL, *source = NULL;

        if (!route_text_plain(text))
                return route_fail(reader, path, "%s", value_control);
        if (strstr(text, "${") || (text[0] == '$' && route_env_name_valid(text + 1, 1)))
                return route_fail(reader, path,
                                  "holt does not expand variables like a shell; write {env:NAME}");
        if (at && (!end || !(str_starts(at, "{env:") || str_starts(at, "{file:"))))
                return route_value_fail_placeholder(reader, path);
        if (end && route_brace(end))
                return route_fail(reader, path, "a value has at most one placeholder");
        prefix = strndup(text, at ? (size_t)(at - text) : strlen(text));
        json_write_string(reader->w, "prefix", prefix);
        json_write_string(reader->w, "suffix", end ? end + 1 : "");
        if (!key)
                return prefix ? 0 : error_oom(reader->reterr);
        at += strlen(key) + 2;
        source = strndup(at, (size_t)(end - at));
        return prefix && source ? route_value_write_source(reader, key, source, path)
                                : error_oom(reader->reterr);
}

/* --- objects --- */

/* Whether the member of an object is no source. */
static bool route_value_is_text(const char *key) {
        return streq(key, "prefix") || streq(key, "basic");
}

/* Handles a member of an object. "prefix" and "user" were written before. */
static int route_value_write_member(const RouteReader *reader, const JsonValue *member,
                                    const char *path) {
        const char *key = json_key(member), *text = json_string(member);

        if (streq(key, "command"))
                return route_value_write_command(reader, member, path);
        if (!route_value_is_text(key) && !streq(key, "env") && !streq(key, "file"))
                return route_fail(reader, path,
                                  "unknown member; write \"env\", \"file\" or \"command\", and "
                                  "perhaps \"prefix\" or \"basic\"");
        if (!text)
                return route_fail_type(reader, member, path, "a string");
        if (streq(key, "basic") && strchr(text, ':'))
                return route_fail(reader, path, "a user has no \":\" (RFC 7617)");
        if (route_value_is_text(key))
                return route_text_plain(text) ? 0 : route_fail(reader, path, "%s", value_control);
        return route_value_write_source(reader, key, text, path);
}

static int route_value_write_object(const RouteReader *reader, const JsonValue *object,
                                    const char *path) {
        size_t sources = 0;

        for (const JsonValue *member = json_first(object); member; member = json_next(member))
                sources += !route_value_is_text(json_key(member));
        if (sources != 1)
                return route_fail(reader, path,
                                  "an object needs one of \"env\", \"file\" and \"command\"");
        if (json_member(object, "basic") && json_member(object, "prefix"))
                return route_fail(reader, path, "\"basic\" and \"prefix\" exclude each other");
        json_write_string(reader->w, "prefix", json_member_text(object, "prefix"));
        json_write_string(reader->w, "suffix", "");
        if (json_member_string(object, "basic"))
                json_write_string(reader->w, "user", json_member_string(object, "basic"));
        return route_each(reader, object, path, JSON_OBJECT, route_value_write_member);
}

/* --- headers and parameters --- */

/* Whether a text beside the placeholder looks like a credential. */
static bool route_value_text_looks_secret(const char *name, const char *text) {
        _cleanup_free_ char *rest = strdup(text);
        const char *brace = route_brace(text), *end = brace ? strchr(brace, '}') : NULL;

        if (rest && end)
                memset(rest + (brace - text), ' ', (size_t)(end - brace));
        return !rest || route_literal_looks_secret(name, rest);
}

static bool route_value_looks_secret(const char *name, const JsonValue *item) {
        if (json_string(item))
                return route_value_text_looks_secret(name, json_string(item));
        return route_literal_looks_secret(name, json_member_text(item, "prefix")) ||
               route_literal_looks_secret(name, json_member_text(item, "basic"));
}

/* Refuses a credential in plain text. */
static int route_value_judge(const RouteReader *reader, const JsonValue *item, bool query,
                             const char *name, const char *path) {
        const char *text = json_string(item);

        if (text && !route_brace(text) && route_literal_is_secret(name, query, text))
                return route_refuse_literal(reader, path, "is");
        return route_value_looks_secret(name, item)
                       ? route_refuse_literal(reader, path, "looks like")
                       : 0;
}

static int route_value_write(const RouteReader *reader, const JsonValue *item, const char *in,
                             const char *name, const char *path) {
        int r;

        json_write_object(reader->w, NULL);
        json_write_string(reader->w, "in", in);
        json_write_string(reader->w, "name", name);
        if (json_type(item) == JSON_OBJECT)
                r = route_value_write_object(reader, item, path);
        else if (json_string(item))
                r = route_value_write_text(reader, json_string(item), path);
        else
                r = route_fail_type(reader, item, path, "a string or an object");
        if (r == 0)
                r = route_value_judge(reader, item, streq(in, "query"), name, path);
        if (r == 0)
                json_write_end(reader->w);
        return r;
}

/* Headers that belong to one connection (RFC 9110, 7.6.1), or that the gateway sets itself. */
static const char *const header_own[] = {
        "host",    "connection", "content-length", "transfer-encoding", "upgrade", "te",
        "trailer", "keep-alive", "expect",
};

static bool route_header_is_own(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(header_own); i++)
                if (streq(name, header_own[i]))
                        return true;
        return str_starts(name, "proxy-");
}

/* Whether an earlier member has the same name, but for its case. */
static bool route_header_is_repeated(const JsonValue *headers, const JsonValue *member) {
        const JsonValue *item = json_first(headers);

        while (item != member && strcasecmp(json_key(item), json_key(member)) != 0)
                item = json_next(item);
        return item != member;
}

static int route_header_write(const RouteReader *reader, const JsonValue *item, const char *path) {
        /* tchar of RFC 9110. */
        static const char token[] = "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~";
        _cleanup_free_ char *name = strdup(json_key(item));

        if (!name)
                return error_oom(reader->reterr);
        for (char *c = name; *c; c++)
                if (*c >= 'A' && *c <= 'Z')
                        *c = (char)(*c | 0x20);
        if (!name[0] || name[strspn(name, token)])
                return route_fail(reader, path, "is not a valid name of a header");
        if (route_header_is_own(name))
                return route_fail(reader, path, "holt sets this header itself");
        if (route_header_is_repeated(json_member(reader->route, "header"), item))
                return route_fail(reader, path, "this header is given twice");
        return route_value_write(reader, item, "header", name, path);
}

static int route_query_write(const RouteReader *reader, const JsonValue *item, const char *path) {
        static const char all[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~[]$";
        const char *name = json_key(item);

        if (!name[0] || name[strspn(name, all)])
                return route_fail(reader, path,
                                  "the name of a parameter has only letters, digits and "
                                  "\"-._~[]$\"");
        return route_value_write(reader, item, "query", name, path);
}

int route_read_header(const RouteReader *reader, const JsonValue *value, const char *path) {
        json_write_array(reader->w, "inject");
        return value ? route_each(reader, value, path, JSON_OBJECT, route_header_write) : 0;
}

int route_read_query(const RouteReader *reader, const JsonValue *value, const char *path) {
        int r = value ? route_each(reader, value, path, JSON_OBJECT, route_query_write) : 0;

        if (r == 0)
                json_write_end(reader->w);
        return r;
}
