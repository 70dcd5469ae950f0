/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/hello.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/strings.h"
#include "base/util.h"
#include "wire/hello-tls.h"
#include "wire/http-head.h"

void hello_refuse(Hello *hello, const char *why) {
        hello->kind = HELLO_BAD;
        hello->why = why;
}

static void hello_start(const uint8_t *data, size_t length, Hello *hello) {
        (void)length;
        if (data[0] == 0x15 || data[0] == 0x16)
                hello->phase = HELLO_PHASE_TLS;
        else if (data[0] >= 0x80 &&
                 data[0] <= 0xc1) /* At most 0x41ff bytes: OpenSSL accepts no more. */
                hello->phase = HELLO_PHASE_SSL2;
        else
                hello->phase = HELLO_PHASE_BLANK;
}

/* --- HTTP --- */

static bool hello_is_blank(uint8_t byte) {
        return byte == ' ' || byte == '\t';
}

static void hello_skip_blank(const uint8_t *data, size_t length, Hello *hello) {
        while (hello->seen < length && (hello_is_blank(data[hello->seen]) ||
                                        data[hello->seen] == '\r' || data[hello->seen] == '\n'))
                hello->seen++;
        if (hello->seen == length)
                return;
        hello->start = hello->seen;
        hello->phase = HELLO_PHASE_WORD;
}

/* Refuses the PROXY protocol. Servers that know it read the name after its header, and others do
 * not. Version 1 is a line; version 2 begins with two empty lines and a NUL. */
static void hello_refuse_proxy(Hello *hello) {
        hello_refuse(hello, "a header of the PROXY protocol");
}

static void hello_read_word(const uint8_t *data, size_t length, Hello *hello) {
        while (hello->seen < length && http_is_token(data[hello->seen]))
                hello->seen++;
        if (hello->seen == length)
                return;
        if (hello->seen > hello->start && hello_is_blank(data[hello->seen]))
                hello->phase = HELLO_PHASE_LINE;
        else if (hello->seen == 4 && memcmp(data, "\r\n\r\n\0", 5) == 0)
                hello_refuse_proxy(hello);
        else
                hello->kind = HELLO_OTHER;
}

/* Whether a line has " HTTP/", in any case. */
static bool hello_has_version(const uint8_t *line, size_t length) {
        for (size_t i = 0; i + 6 <= length; i++)
                if (hello_is_blank(line[i]) &&
                    strncasecmp((const char *)line + i + 1, "HTTP/", 5) == 0)
                        return true;
        return false;
}

/* Whether a line looks like "METHOD /..." or "METHOD http...". No other protocol begins in this
 * way. */
static bool hello_is_request(const uint8_t *line, size_t length) {
        size_t i = 0;

        while (i < length &&
               ((line[i] >= 'A' && line[i] <= 'Z') || line[i] == '-' || line[i] == '_'))
                i++;
        if (i == 0 || i == length || !hello_is_blank(line[i]))
                return false;
        while (i < length && hello_is_blank(line[i]))
                i++;
        return i < length && strchr("/*hH", line[i]);
}

/* Whether a line is a request of HTTP/0.9 with a URI. It has no Host field, and some servers use
 * the host of the URI. */
static bool hello_is_old_uri(const uint8_t *line, size_t length) {
        size_t i = 3;

        if (length < 4 || memcmp(line, "GET", 3) != 0 || !hello_is_blank(line[3]))
                return false;
        while (i < length && hello_is_blank(line[i]))
                i++;
        return (length - i >= 7 && strncasecmp((const char *)line + i, "http://", 7) == 0) ||
               (length - i >= 8 && strncasecmp((const char *)line + i, "https://", 8) == 0);
}

/* Judges the first line, without its line feed. */
static void hello_judge_line(const uint8_t *line, size_t length, Hello *hello) {
        static const char http2[] = "PRI * HTTP/2.0\r";

        if (length == sizeof(http2) - 1 && memcmp(line, http2, length) == 0)
                hello->kind = HELLO_OTHER;
        else if (length >= 6 && memcmp(line, "PROXY ", 6) == 0)
                hello_refuse_proxy(hello);
        else if (hello_has_version(line, length))
                hello->phase = HELLO_PHASE_HEAD;
        else if (hello_is_old_uri(line, length))
                hello_refuse(hello, "a URI in an HTTP/0.9 request");
        else
                hello->kind = HELLO_OTHER;
}

/* Reads the first line. It stops at a control byte, because another protocol may never send a
 * line's end. */
static void hello_read_line(const uint8_t *data, size_t length, Hello *hello) {
        const uint8_t *line = data + hello->start;

        for (; hello->seen < length; hello->seen++) {
                const uint8_t byte = data[hello->seen];

                if (byte == '\n') {
                        hello_judge_line(line, hello->seen - hello->start, hello);
                        hello->seen = hello->start;
                        return;
                }
                if ((byte < ' ' && byte != '\t' && byte != '\r') || byte == 0x7f) {
                        if (hello_is_request(line, hello->seen - hello->start))
                                hello_refuse(hello, "a control character in a request line");
                        else
                                hello->kind = HELLO_OTHER;
                        return;
                }
        }
}

/* Judges a request, which must be one to a server and not to a proxy. If it has a URI, its host
 * must be that of the Host field. */
static void hello_judge_request(const HttpHead *head, Hello *hello) {
        const Authority *host = head->has_host ? &head->host : &head->target;

        if (head->form == HTTP_AUTHORITY)
                hello_refuse(hello, "a CONNECT request");
        else if (head->form == HTTP_ABSOLUTE && !streq(head->target.host, host->host))
                hello_refuse(hello, "a URI with another host than the Host field");
        else {
                hello->kind = HELLO_HTTP;
                strcpy(hello->name, host->host);
        }
}

static void hello_read_head(const uint8_t *data, size_t length, Hello *hello) {
        int r = http_head_end(data, length, hello->start, &hello->seen);
        const char *why;
        HttpHead head;

        if (r < 0)
                hello_refuse(hello, "a line feed without a carriage return");
        if (r <= 0)
                return;
        if (http_head_parse(data + hello->start, hello->seen - hello->start, &head, &why) < 0)
                hello_refuse(hello, why);
        else
                hello_judge_request(&head, hello);
}

/* --- both --- */

static void (*const hello_phases[])(const uint8_t *data, size_t length, Hello *hello) = {
        [HELLO_PHASE_START] = hello_start,     [HELLO_PHASE_TLS] = hello_tls_parse,
        [HELLO_PHASE_SSL2] = hello_ssl2_parse, [HELLO_PHASE_BLANK] = hello_skip_blank,
        [HELLO_PHASE_WORD] = hello_read_word,  [HELLO_PHASE_LINE] = hello_read_line,
        [HELLO_PHASE_HEAD] = hello_read_head,
};
static_assert(ELEMENTSOF(hello_phases) == HELLO_PHASE_MAX, "a phase has no function");

void hello_read(const uint8_t *data, size_t length, Hello *hello) {
        const bool full = length >= HELLO_MAX;
        HelloPhase before;

        if (length == 0)
                return;
        do {
                before = hello->phase;
                if (hello->kind == HELLO_MORE)
                        hello_phases[before](data, full ? HELLO_MAX : length, hello);
        } while (hello->phase != before);
        if (full && hello->kind == HELLO_MORE)
                hello_refuse(hello, "a request that is too long");
}

/* Whether a word could be a method. Nearly all servers take only upper case. */
static bool hello_is_method(const uint8_t *word, size_t length) {
        for (size_t i = 0; i < length; i++)
                if (word[i] >= 'A' && word[i] <= 'Z')
                        return true;
        return false;
}

void hello_finish(const uint8_t *data, size_t length, bool closed, Hello *hello) {
        const uint8_t *line = data + hello->start;
        const HelloPhase phase = hello->phase;

        if (hello->kind != HELLO_MORE)
                return;
        if (!closed) {
                if (phase == HELLO_PHASE_WORD && !hello_is_method(line, length - hello->start))
                        hello->kind = HELLO_OTHER;
                return;
        }
        if (phase == HELLO_PHASE_LINE)
                hello_judge_line(line, length - hello->start, hello);
        else if (phase == HELLO_PHASE_START || phase == HELLO_PHASE_BLANK ||
                 phase == HELLO_PHASE_WORD)
                hello->kind = HELLO_OTHER;
        if (hello->kind == HELLO_MORE)
                hello_refuse(hello, "a request that is incomplete");
}
