/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/tunnel-head.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gateway/transfer.h"

bool header_has_word(const char *value, const char *word) {
        while (*value) {
                size_t length;

                value += strspn(value, ", \t");
                length = strcspn(value, ",");
                while (length > 0 && strchr(" \t", value[length - 1]))
                        length--;
                if (length == strlen(word) && strncasecmp(value, word, length) == 0)
                        return true;
                value += strcspn(value, ",");
        }
        return false;
}

/* --- the request --- */

/* Whether the text stays in its line, and in its place of the line. */
static bool head_text_is_safe(const char *text, bool target) {
        for (; *text; text++) {
                const unsigned char c = (unsigned char)*text;

                if (c == 0x7f || (c < 0x20 && (c != '\t' || target)))
                        return false;
                if (target && (c == ' ' || c == '#' || c >= 0x80))
                        return false;
        }
        return true;
}

static int head_add(Buffer *ret, const char *a, const char *b, const char *c) {
        int r = pipe_buffer_add(ret, a, strlen(a));

        if (r == 0)
                r = pipe_buffer_add(ret, b, strlen(b));
        return r == 0 ? pipe_buffer_add(ret, c, strlen(c)) : r;
}

/* Adds a header in libcurl's notation: "name;" has no value, and "name:" is to be left out. */
static int head_add_line(Buffer *ret, const char *line) {
        const size_t length = strlen(line);
        _cleanup_free_ char *empty = NULL;

        if (!head_text_is_safe(line, false))
                return -EINVAL;
        if (length == 0 || line[length - 1] == ':' ||
            strncasecmp(line, "sec-websocket-extensions", strlen("sec-websocket-extensions")) == 0)
                return 0;
        if (strchr(line, ':'))
                return head_add(ret, line, "\r\n", "");
        empty = strndup(line, strcspn(line, ";"));
        return empty ? head_add(ret, empty, ":\r\n", "") : -ENOMEM;
}

/* The host as libcurl names it: without the usual port. */
static int head_add_host(const Exchange *e, Buffer *ret) {
        const Route *route = e->route;
        const bool bracket = strchr(route->host, ':'),
                   usual = route->port == (route->tls ? 443 : 80);
        char port[16] = "";
        int r = head_add(ret, "Host: ", bracket ? "[" : "", route->host);

        if (!usual)
                (void)snprintf(port, sizeof(port), ":%u", route->port);
        return r == 0 ? head_add(ret, bracket ? "]" : "", port, "\r\n") : r;
}

int tunnel_write_head(const Exchange *e, Buffer *ret) {
        _cleanup_free_ char *url = transfer_url(e);
        const char *host = url ? strstr(url, "://") : NULL;
        const char *target = host ? strchr(host + 3, '/') : NULL;
        int r = -ENOMEM;

        if (target)
                r = head_text_is_safe(target, true)
                            ? head_add(ret, "GET ", target,
                                       " HTTP/1.1\r\nConnection: Upgrade\r\n"
                                       "Upgrade: websocket\r\n")
                            : -EINVAL;
        if (r == 0)
                r = head_add_host(e, ret);
        for (const struct curl_slist *line = e->headers; r == 0 && line; line = line->next)
                r = head_add_line(ret, line->data);
        if (url)
                explicit_bzero(url, strlen(url));
        return r == 0 ? head_add(ret, "\r\n", "", "") : r;
}

/* --- the response --- */

ssize_t tunnel_head_length(const char *bytes, size_t length) {
        static const char start[] = "HTTP/1.";
        const size_t known = length < strlen(start) ? length : strlen(start);
        const char *end = memmem(bytes, length, "\r\n\r\n", 4);
        const size_t head = end ? (size_t)(end + 4 - bytes) : 0;

        if (memcmp(bytes, start, known) != 0 || (end ? head : length) > TUNNEL_HEAD_MAX)
                return -EPROTO;
        return (ssize_t)head;
}

/* Whether a line of a head can be read in only one way. Folded lines, spaces before the colon and
 * control characters are refused. */
static bool head_line_is_clear(const char *line, size_t length, bool first) {
        const char *colon = memchr(line, ':', length);

        for (size_t i = 0; i < length; i++)
                if (((unsigned char)line[i] < 0x20 && line[i] != '\t') || line[i] == 0x7f)
                        return false;
        if (first)
                return length >= 12 && line[8] == ' ';
        return colon && colon > line && !memchr(line, ' ', (size_t)(colon - line)) &&
               !memchr(line, '\t', (size_t)(colon - line));
}

int tunnel_take_head(Exchange *e, const char *head, size_t length) {
        const char *end = head + length;
        int r = 0;

        for (const char *line = head; r == 0 && line < end;) {
                const char *next = memmem(line, (size_t)(end - line), "\r\n", 2);
                const size_t size = next ? (size_t)(next - line) : 0;

                if (!next || (size > 0 && !head_line_is_clear(line, size, line == head)))
                        return -EPROTO;
                r = transfer_take_header(e, line, size);
                line = next + 2;
        }
        return r;
}
