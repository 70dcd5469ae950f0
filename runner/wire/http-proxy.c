/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http-proxy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/strings.h"

enum {
        HTTP_PORT = 80,
        CHUNK_DIGITS = 15, /* Digits of the size of a chunk: less than 2^60 bytes. */
};

static void http_proxy_refuse(HttpProxyRequest *request, const char *why) {
        request->kind = HTTP_PROXY_BAD;
        request->why = why;
}

/* Returns the length of the body. HTTP_PROXY_ENDLESS means that two servers could find its end at
 * different places. */
static uint64_t http_proxy_body(const HttpHead *head) {
        HttpText rest = head->fields;
        uint64_t length = 0;
        HttpField field;
        bool known = false;

        while (http_field_next(&rest, &field)) {
                const bool coded = http_text_is(&field.name, "Transfer-Encoding");
                char text[24];

                if (!coded && !http_text_is(&field.name, "Content-Length"))
                        continue;
                if (known || field.value.length >= sizeof(text))
                        return HTTP_PROXY_ENDLESS;
                known = true;
                memcpy(text, field.value.at, field.value.length);
                text[field.value.length] = '\0';
                if (coded && head->minor > 0 && http_text_is(&field.value, "chunked"))
                        length = HTTP_PROXY_CHUNKED;
                else if (coded || str_to_uint(text, INT64_MAX, &length) < 0)
                        return HTTP_PROXY_ENDLESS;
        }
        return length;
}

static void http_proxy_judge(const HttpHead *head, HttpProxyRequest *request) {
        if (head->form == HTTP_ORIGIN || head->form == HTTP_ASTERISK) {
                http_proxy_refuse(request, "a request to a server, not to a proxy");
        } else if (head->form == HTTP_ABSOLUTE && head->secure) {
                http_proxy_refuse(request, "an https URI without CONNECT");
        } else if (head->form == HTTP_ABSOLUTE && http_proxy_body(head) == HTTP_PROXY_ENDLESS) {
                http_proxy_refuse(request, "a body without a clear end");
        } else {
                request->kind = head->form == HTTP_AUTHORITY ? HTTP_PROXY_CONNECT
                                                             : HTTP_PROXY_FORWARD;
                request->target = head->target;
                request->body = http_proxy_body(head);
                if (request->target.port == 0)
                        request->target.port = HTTP_PORT;
        }
}

void http_proxy_read(const uint8_t *data, size_t length, HttpProxyRequest *request) {
        const bool full = length >= HTTP_PROXY_MAX;
        const char *why;
        HttpHead head;
        int r;

        if (request->kind != HTTP_PROXY_MORE)
                return;
        r = http_head_end(data, full ? HTTP_PROXY_MAX : length, 0, &request->seen);
        if (r < 0) {
                http_proxy_refuse(request, "a line feed without a carriage return");
        } else if (r == 0) {
                if (full)
                        http_proxy_refuse(request, "a request that is too long");
        } else if (http_head_parse(data, request->seen, &head, &why) < 0) {
                http_proxy_refuse(request, why);
        } else {
                request->length = request->seen;
                http_proxy_judge(&head, request);
        }
}

static int chunk_digit(uint8_t byte) {
        static const char digits[] = "0123456789abcdef";
        const char *found = byte ? strchr(digits, byte >= 'A' && byte <= 'F' ? byte | 0x20 : byte)
                                 : NULL;

        return found ? (int)(found - digits) : -1;
}

/* Returns 1 if the bytes at *at are a line end, 0 if more are needed, or -EBADMSG. */
static int chunk_line_end(const uint8_t *data, size_t length, size_t *at) {
        for (const char *end = "\r\n"; *end; end++, (*at)++) {
                if (*at == length)
                        return 0;
                if (data[*at] != (uint8_t)*end)
                        return -EBADMSG;
        }
        return 1;
}

int http_chunk_read(const uint8_t *data, size_t length, bool first, uint64_t *ret_size,
                    bool *ret_last) {
        uint64_t size = 0;
        size_t at = 0, digits = 0;
        int r = first ? 1 : chunk_line_end(data, length, &at);

        if (r <= 0)
                return r;
        for (; at < length && chunk_digit(data[at]) >= 0; at++, digits++)
                if (digits < CHUNK_DIGITS)
                        size = size << 4 | (unsigned)chunk_digit(data[at]);
        if (digits > CHUNK_DIGITS || (digits == 0 && at < length))
                return -EBADMSG;
        r = chunk_line_end(data, length, &at);
        if (r > 0 && size == 0)
                r = chunk_line_end(data, length, &at);
        if (r <= 0)
                return r;
        *ret_size = at + size;
        *ret_last = size == 0;
        return 1;
}

/* Fields that are only for the proxy, and fields that http_proxy_write() adds itself. */
static bool http_proxy_drops(const HttpText *name) {
        static const char *const dropped[] = {
                "Host",       "Connection",          "Proxy-Connection",
                "Keep-Alive", "Proxy-Authorization", "Proxy-Authenticate",
                "Upgrade",    "HTTP2-Settings",      "TE",
        };

        for (size_t i = 0; i < ELEMENTSOF(dropped); i++)
                if (http_text_is(name, dropped[i]))
                        return true;
        return false;
}

static size_t http_proxy_copy(uint8_t *ret, const void *bytes, size_t size) {
        if (size > 0)
                memcpy(ret, bytes, size);
        return size;
}

/* Writes the host of the URI as a Host field. Returns its length. */
static size_t http_proxy_write_host(const Authority *target, uint8_t *ret) {
        bool brackets = target->address.family == AF_INET6;
        char text[NET_NAME_MAX + 32], port[8] = "";

        if (target->port != HTTP_PORT)
                (void)snprintf(port, sizeof(port), ":%u", target->port);
        (void)snprintf(text, sizeof(text), "Host: %s%s%s%s\r\n", brackets ? "[" : "", target->host,
                       brackets ? "]" : "", port);
        return http_proxy_copy(ret, text, strlen(text));
}

size_t http_proxy_write(const uint8_t *data, const HttpProxyRequest *request, uint8_t *ret) {
        HttpText rest;
        HttpField field;
        const char *why;
        HttpHead head;
        size_t at = 0;
        char end[] = " HTTP/1.x\r\n";

        if (request->kind != HTTP_PROXY_FORWARD ||
            http_head_parse(data, request->length, &head, &why) < 0)
                return 0;
        end[8] = (char)('0' + head.minor);
        at += http_proxy_copy(ret + at, head.method.at, head.method.length);
        at += http_proxy_copy(ret + at, " /", head.path.length > 0 && *head.path.at == '/' ? 1 : 2);
        at += http_proxy_copy(ret + at, head.path.at, head.path.length);
        at += http_proxy_copy(ret + at, end, sizeof(end) - 1);
        at += http_proxy_write_host(&request->target, ret + at);
        rest = head.fields;
        while (http_field_next(&rest, &field))
                if (!http_proxy_drops(&field.name))
                        at += http_proxy_copy(ret + at, field.line.at, field.line.length);
        at += http_proxy_copy(ret + at, "Connection: close\r\n\r\n", 21);
        return at;
}
