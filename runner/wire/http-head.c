/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http-head.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/strings.h"

bool http_is_token(uint8_t byte) {
        return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
               (byte >= 'a' && byte <= 'z') || (byte != 0 && strchr("!#$%&'*+-.^_`|~", byte));
}

bool http_text_is(const HttpText *text, const char *other) {
        return text->length == strlen(other) && strncasecmp(text->at, other, text->length) == 0;
}

int http_head_end(const uint8_t *data, size_t length, size_t start, size_t *seen) {
        while (*seen < length) {
                const uint8_t *feed = memchr(data + *seen, '\n', length - *seen);
                size_t at;

                if (!feed) {
                        *seen = length;
                        break;
                }
                at = (size_t)(feed - data);
                if (at == start || data[at - 1] != '\r')
                        return -EBADMSG;
                *seen = at + 1;
                if (at >= start + 3 && data[at - 2] == '\n')
                        return 1;
        }
        return 0;
}

/* --- the request line --- */

/* Takes the bytes before the first occurrence of a byte, and drops that byte. Returns false if
 * there is none. */
static bool http_take_before(HttpText *rest, char byte, HttpText *ret) {
        const char *found = rest->length > 0 ? memchr(rest->at, byte, rest->length) : NULL;

        if (!found)
                return false;
        *ret = (HttpText){ rest->at, (size_t)(found - rest->at) };
        rest->length -= ret->length + 1;
        rest->at = found + 1;
        return true;
}

static bool http_is_all_tokens(const HttpText *text) {
        for (size_t i = 0; i < text->length; i++)
                if (!http_is_token((uint8_t)text->at[i]))
                        return false;
        return text->length > 0;
}

static bool http_starts(const HttpText *text, const char *prefix) {
        size_t length = strlen(prefix);

        return text->length >= length && strncasecmp(text->at, prefix, length) == 0;
}

/* Reads a URI with http or https. Its host ends at the path or the query; a fragment is no part of
 * a request. */
static int http_parse_uri(const HttpText *uri, HttpHead *ret) {
        const char *host, *end = uri->at + uri->length, *rest;

        ret->form = HTTP_ABSOLUTE;
        ret->secure = http_starts(uri, "https://");
        if (!ret->secure && !http_starts(uri, "http://"))
                return -EBADMSG;
        host = uri->at + (ret->secure ? 8 : 7);
        for (rest = host; rest < end && *rest != '/' && *rest != '?';)
                rest++;
        ret->path = (HttpText){ rest, (size_t)(end - rest) };
        return authority_parse(host, (size_t)(rest - host), &ret->target) < 0 ? -EBADMSG : 0;
}

/* Returns 0, or -EBADMSG. */
static int http_parse_target(const HttpText *target, HttpHead *ret) {
        for (size_t i = 0; i < target->length; i++)
                if ((uint8_t)target->at[i] <= ' ' || target->at[i] == 0x7f)
                        return -EBADMSG;
        if (ret->method.length == 7 && memcmp(ret->method.at, "CONNECT", 7) == 0) {
                ret->form = HTTP_AUTHORITY;
                return authority_parse(target->at, target->length, &ret->target) < 0 ||
                                       ret->target.port == 0
                               ? -EBADMSG
                               : 0;
        }
        if (http_text_is(&ret->method, "CONNECT"))
                return -EBADMSG;
        if (target->length == 1 && target->at[0] == '*') {
                ret->form = HTTP_ASTERISK;
                return 0;
        }
        if (target->length > 0 && target->at[0] == '/') {
                ret->form = HTTP_ORIGIN;
                ret->path = *target;
                return 0;
        }
        return http_parse_uri(target, ret);
}

/* Reads exactly "METHOD TARGET HTTP/1.DIGIT". */
static int http_parse_request_line(HttpText line, HttpHead *ret, const char **ret_why) {
        HttpText target;

        *ret_why = "a malformed request line";
        if (!http_take_before(&line, ' ', &ret->method) || !http_is_all_tokens(&ret->method) ||
            !http_take_before(&line, ' ', &target))
                return -EBADMSG;
        if (line.length != 8 || memcmp(line.at, "HTTP/1.", 7) != 0 || line.at[7] < '0' ||
            line.at[7] > '9')
                return -EBADMSG;
        ret->minor = (unsigned)(line.at[7] - '0');
        *ret_why = "a malformed target of a request";
        return http_parse_target(&target, ret);
}

/* --- the fields --- */

bool http_field_next(HttpText *rest, HttpField *ret) {
        HttpText line = { rest->at, 0 }, whole;

        if (!http_take_before(rest, '\n', &line))
                return false;
        whole = (HttpText){ line.at, line.length + 1 };
        if (line.length > 0 && line.at[line.length - 1] == '\r')
                line.length--;
        *ret = (HttpField){ .line = whole };
        if (!http_take_before(&line, ':', &ret->name))
                ret->name = (HttpText){ line.at, 0 };
        while (line.length > 0 && (line.at[0] == ' ' || line.at[0] == '\t')) {
                line.at++;
                line.length--;
        }
        while (line.length > 0 &&
               (line.at[line.length - 1] == ' ' || line.at[line.length - 1] == '\t'))
                line.length--;
        ret->value = line;
        return true;
}

static bool http_is_printable(const HttpText *text) {
        for (size_t i = 0; i < text->length; i++)
                if (((uint8_t)text->at[i] < ' ' && text->at[i] != '\t') || text->at[i] == 0x7f)
                        return false;
        return true;
}

static int http_parse_host(const HttpField *field, bool *had, HttpHead *ret, const char **ret_why) {
        *ret_why = "two Host fields";
        if (*had)
                return -EBADMSG;
        *had = true;
        if (field->value.length == 0)
                return 0;
        *ret_why = "a malformed Host field";
        ret->has_host = true;
        return authority_parse(field->value.at, field->value.length, &ret->host) < 0 ? -EBADMSG : 0;
}

static int http_parse_fields(HttpHead *ret, const char **ret_why) {
        HttpText rest = ret->fields;
        HttpField field;
        bool had_host = false;

        while (http_field_next(&rest, &field)) {
                *ret_why = "a field that continues on the next line";
                if (field.line.at[0] == ' ' || field.line.at[0] == '\t')
                        return -EBADMSG;
                *ret_why = "a malformed field";
                if (!http_is_all_tokens(&field.name) || !http_is_printable(&field.value))
                        return -EBADMSG;
                if (http_text_is(&field.name, "Host") &&
                    http_parse_host(&field, &had_host, ret, ret_why) < 0)
                        return -EBADMSG;
        }
        return 0;
}

int http_head_parse(const void *data, size_t length, HttpHead *ret, const char **ret_why) {
        HttpText rest = { data, length }, line = { data, 0 };
        HttpHead head = { 0 };

        *ret_why = "a malformed request line";
        if (!http_take_before(&rest, '\n', &line) || line.length == 0 ||
            line.at[line.length - 1] != '\r' || rest.length < 2)
                return -EBADMSG;
        line.length--;
        /* Without the empty line. */
        head.fields = (HttpText){ rest.at, rest.length - 2 };
        if (http_parse_request_line(line, &head, ret_why) < 0 ||
            http_parse_fields(&head, ret_why) < 0)
                return -EBADMSG;
        *ret = head;
        return 0;
}
