/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/http-head.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/strings.h"

typedef struct HeadFields {
        const char *host, *origin, *authorization, *type, *length, *session, *encoding;
} HeadFields;

static const struct {
        const char *name;
        size_t offset;
} head_names[] = {
        { "host", offsetof(HeadFields, host) },
        { "origin", offsetof(HeadFields, origin) },
        { "authorization", offsetof(HeadFields, authorization) },
        { "content-type", offsetof(HeadFields, type) },
        { "content-length", offsetof(HeadFields, length) },
        { "mcp-session-id", offsetof(HeadFields, session) },
        { "transfer-encoding", offsetof(HeadFields, encoding) },
};

/* Returns the next line without its CRLF, or NULL if the line is not valid. */
static char *head_line(char **at) {
        char *line = *at, *end = strstr(line, "\r\n");

        if (!end)
                return NULL;
        *end = '\0';
        *at = end + 2;
        for (const char *p = line; *p; p++)
                if ((unsigned char)*p < 0x20 && *p != '\t')
                        return NULL;
        return line;
}

/* A field that is given twice is an error: another program might see the other value. */
static bool head_take_field(char *line, HeadFields *fields) {
        char *colon = strchr(line, ':'), *value, *end;

        if (!colon || colon == line || line[0] == ' ' || line[0] == '\t' || colon[-1] == ' ')
                return false;
        *colon = '\0';
        value = colon + 1 + strspn(colon + 1, " \t");
        end = value + strlen(value);
        while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
                *--end = '\0';
        for (size_t i = 0; i < ELEMENTSOF(head_names); i++) {
                const char **field = (const char **)(void *)((char *)fields + head_names[i].offset);

                if (strcasecmp(line, head_names[i].name) != 0)
                        continue;
                if (*field)
                        return false;
                *field = value;
        }
        return true;
}

/* Compares in constant time. */
static bool head_is_token(const char *authorization, const char *token) {
        const size_t length = strlen(token);
        const char *given;
        unsigned char differs = 0;

        if (!authorization || strncasecmp(authorization, "Bearer ", strlen("Bearer ")) != 0)
                return false;
        given = authorization + strlen("Bearer ");
        if (strlen(given) != length)
                return false;
        for (size_t i = 0; i < length; i++)
                differs |= (unsigned char)(given[i] ^ token[i]);
        return differs == 0;
}

static bool head_is_here(const char *host, uint16_t port) {
        static const char *const names[] = { "127.0.0.1", "localhost" };
        char wanted[32];

        for (size_t i = 0; host && i < ELEMENTSOF(names); i++) {
                (void)snprintf(wanted, sizeof(wanted), "%s:%u", names[i], port);
                if (strcasecmp(host, wanted) == 0)
                        return true;
        }
        return false;
}

static int head_method(const char *line, HttpMethod *ret) {
        static const char *const lines[] = { "POST /mcp HTTP/1.1", "GET /mcp HTTP/1.1",
                                             "DELETE /mcp HTTP/1.1" };

        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                if (streq(line, lines[i])) {
                        *ret = (HttpMethod)i;
                        return 0;
                }
        return strstr(line, " /mcp ") ? 405 : 404;
}

static int head_read_body(const HeadFields *fields, HttpHead *ret) {
        const char *type = fields->type;
        uint64_t length = 0;

        if (fields->encoding)
                return 411;
        if (fields->length && str_to_uint(fields->length, HTTP_BODY_MAX, &length) < 0)
                return 413;
        if (ret->method == HTTP_POST && !fields->length)
                return 411;
        if (ret->method != HTTP_POST && length > 0)
                return 400;
        /* A page of another site can post only other types without asking first. */
        if (ret->method == HTTP_POST && (!type || strncasecmp(type, "application/json", 16) != 0 ||
                                         (type[16] != '\0' && type[16] != ';' && type[16] != ' ')))
                return 415;
        ret->body = (size_t)length;
        return 0;
}

int http_head_read(char *head, size_t length, uint16_t port, const char *token, HttpHead *ret) {
        HeadFields fields = { 0 };
        char *at = head, *first, *line;
        int status;

        *ret = (HttpHead){ 0 };
        if (strlen(head) != length)
                return 400;
        first = head_line(&at);
        while (first && (line = head_line(&at)) && line[0] != '\0')
                if (!head_take_field(line, &fields))
                        return 400;
        if (!first || !line)
                return 400;
        if (!head_is_here(fields.host, port) || fields.origin)
                return 403;
        if (!head_is_token(fields.authorization, token))
                return 401;
        status = head_method(first, &ret->method);
        if (status == 0 && fields.session) {
                if (strlen(fields.session) != HTTP_SESSION_ID)
                        return 404;
                (void)strcpy(ret->session, fields.session);
        }
        return status == 0 ? head_read_body(&fields, ret) : status;
}
