/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/peek.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

enum { PEEK_ID_MAX = 128 }; /* bytes of an id, in JSON */

/* Returns the byte after the string that begins at p, or end. */
static const char *peek_skip_string(const char *p, const char *end) {
        for (p++; p < end && *p != '"'; p++)
                p += *p == '\\';
        return p < end ? p + 1 : end;
}

static const char *peek_skip_blanks(const char *p, const char *end) {
        while (p < end && (*p == ' ' || *p == '\t'))
                p++;
        return p;
}

/* Returns the first byte of the value of "id", or NULL. */
static const char *peek_find(const char *p, const char *end) {
        int depth = 0;

        while (p < end) {
                const char *const key = p, *after;

                depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
                if (*p != '"') {
                        p++;
                        continue;
                }
                p = peek_skip_string(p, end);
                after = peek_skip_blanks(p, end);
                if (depth == 1 && p - key == 4 && memcmp(key, "\"id\"", 4) == 0 && after < end &&
                    *after == ':')
                        return peek_skip_blanks(after + 1, end);
        }
        return NULL;
}

bool peek_message_id(const char *line, size_t length, JsonWriter *ret) {
        const char *const end = line + length, *value = peek_find(line, end), *stop = value;
        _cleanup_(json_freep) JsonDocument *document = NULL;
        char text[PEEK_ID_MAX + 16];
        Error ignored;
        int n;

        if (!value || value == end)
                return false;
        if (*value == '"')
                stop = peek_skip_string(value, end);
        else
                while (stop < end && strchr("+-.eE0123456789", *stop) && *stop)
                        stop++;
        if (stop == value || stop - value > PEEK_ID_MAX)
                return false;
        n = snprintf(text, sizeof(text), "{\"id\":%.*s}", (int)(stop - value), value);
        if (json_parse(text, (size_t)n, "id", &document, &ignored) < 0)
                return false;
        json_copy(ret, NULL, json_member(json_root(document), "id"));
        return true;
}
