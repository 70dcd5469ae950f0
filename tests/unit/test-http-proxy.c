/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>

#include "base/util.h"
#include "wire/http-proxy.h"

static uint8_t bytes[HTTP_PROXY_MAX + 100], written[HTTP_PROXY_MAX + HTTP_PROXY_GROWTH];

static HttpProxyRequest read_text(const char *text) {
        HttpProxyRequest slow = { 0 }, request = { 0 };

        http_proxy_read((const uint8_t *)text, strlen(text), &request);
        for (size_t length = 0; length <= strlen(text) && slow.kind == HTTP_PROXY_MORE; length++) {
                uint8_t *copy = malloc(length + 1);

                assert_non_null(copy);
                memcpy(copy + 1, text, length);
                http_proxy_read(copy + 1, length, &slow);
                free(copy);
        }
        assert_int_equal(slow.kind, request.kind);
        assert_int_equal(slow.length, request.length);
        assert_string_equal(slow.target.host, request.target.host);
        assert_true((request.kind == HTTP_PROXY_BAD) == (request.why != NULL));
        return request;
}

static void test_connect(void **state) {
        static const struct {
                const char *text, *host;
                int family, port;
        } cases[] = {
                { "CONNECT A.Example:443 HTTP/1.1\r\nHost: A.Example:443\r\n\r\n", "a.example", 0,
                  443 },
                { "CONNECT a.example:22 HTTP/1.0\r\n\r\n", "a.example", 0, 22 },
                { "CONNECT [2001:db8::1]:443 HTTP/1.1\r\n\r\n", "2001:db8::1", AF_INET6, 443 },
                { "CONNECT 192.0.2.1:443 HTTP/1.1\r\nHost: b\r\n\r\n", "192.0.2.1", AF_INET, 443 },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                HttpProxyRequest request = read_text(cases[i].text);

                assert_int_equal(request.kind, HTTP_PROXY_CONNECT);
                assert_string_equal(request.target.host, cases[i].host);
                assert_int_equal(request.target.address.family, cases[i].family);
                assert_int_equal(request.target.port, cases[i].port);
                assert_int_equal(request.length, strlen(cases[i].text));
                assert_int_equal(
                        http_proxy_write((const uint8_t *)cases[i].text, &request, written), 0);
        }
}

static void test_bytes_after_the_head(void **state) {
        HttpProxyRequest request = read_text("CONNECT a:443 HTTP/1.1\r\n\r\n\x16\3\1\r\n\r\n");

        (void)state;
        assert_int_equal(request.kind, HTTP_PROXY_CONNECT);
        assert_int_equal(request.length, 26);
}

static void test_forward(void **state) {
        static const struct {
                const char *text, *wanted;
        } cases[] = {
                { "GET http://A.Example/x?y=1 HTTP/1.1\r\nHost: other\r\nAccept: */*\r\n"
                  "Proxy-Connection: keep-alive\r\nproxy-authorization: Basic eA==\r\n\r\n",
                  "GET /x?y=1 HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nConnection: "
                  "close\r\n\r\n" },
                { "POST HTTP://a:8080 HTTP/1.0\r\nContent-Length: 2\r\n\r\nxy",
                  "POST / HTTP/1.0\r\nHost: a:8080\r\nContent-Length: 2\r\nConnection: "
                  "close\r\n\r\n" },
                { "GET http://[2001:DB8::1]:81?q HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: "
                  "x\r\n\r\n",
                  "GET /?q HTTP/1.1\r\nHost: [2001:db8::1]:81\r\nConnection: close\r\n\r\n" },
                { "GET http://a:80/ HTTP/1.1\r\n\r\n",
                  "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                HttpProxyRequest request = read_text(cases[i].text);
                size_t length;

                assert_int_equal(request.kind, HTTP_PROXY_FORWARD);
                length = http_proxy_write((const uint8_t *)cases[i].text, &request, written);
                assert_true(length <= request.length + HTTP_PROXY_GROWTH);
                written[length] = '\0';
                assert_string_equal((char *)written, cases[i].wanted);
        }
}

static void test_bad(void **state) {
        static const char *const requests[] = {
                "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
                "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                "GET http://a/ HTTP/1.1\nHost: a\n\n",
                "GET http://a/ HTTP/1.1\r\nX: y\r\n z\r\n\r\n",
                "GET http://a/ HTTP/2.0\r\n\r\n",
                "GET http://a/\r\n\r\n",
                "CONNECT a HTTP/1.1\r\n\r\n",
                "CONNECT a: HTTP/1.1\r\n\r\n",
                "CONNECT a:0 HTTP/1.1\r\n\r\n",
                "CONNECT a:65536 HTTP/1.1\r\n\r\n",
                "CONNECT a:443/ HTTP/1.1\r\n\r\n",
                "CONNECT :443 HTTP/1.1\r\n\r\n",
                "CONNECT u@a:443 HTTP/1.1\r\n\r\n",
                "CONNECT http://a:443 HTTP/1.1\r\n\r\n",
                "CONNECT ::1:443 HTTP/1.1\r\n\r\n",
                "CONNECT 2130706433:443 HTTP/1.1\r\n\r\n",
                "CONNECT a:443\r\n\r\n",
                "connect a:443 HTTP/1.1\r\n\r\n",
                "\r\n\r\n",
                "\r\nCONNECT a:443 HTTP/1.1\r\n\r\n",
                "\n",
                /* Bodies whose end two servers could see at different places. */
                "POST http://a/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
                "POST http://a/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
                "POST http://a/ HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
                "POST http://a/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: "
                "chunked\r\n\r\n",
                "POST http://a/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
                "chunked\r\n\r\n",
                "POST http://a/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                "POST http://a/ HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n",
                "POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(requests); i++)
                assert_int_equal(read_text(requests[i]).kind, HTTP_PROXY_BAD);
}

static void test_more(void **state) {
        (void)state;
        assert_int_equal(read_text("").kind, HTTP_PROXY_MORE);
        assert_int_equal(read_text("CONNECT a:443 HTTP/1.1\r\n\r").kind, HTTP_PROXY_MORE);
        assert_int_equal(read_text("CONNECT a:443 HTTP/1.1\r\n").kind, HTTP_PROXY_MORE);
}

static void test_bodies(void **state) {
        static const struct {
                const char *fields;
                uint64_t body;
        } cases[] = {
                { "", 0 },
                { "Content-Length: 0\r\n", 0 },
                { "content-length: 12\r\n", 12 },
                { "Transfer-Encoding: chunked\r\n", HTTP_PROXY_CHUNKED },
                { "transfer-encoding: Chunked\r\n", HTTP_PROXY_CHUNKED },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char text[200];
                HttpProxyRequest request;

                (void)snprintf(text, sizeof(text), "POST http://a/ HTTP/1.1\r\n%s\r\n",
                               cases[i].fields);
                request = read_text(text);
                assert_int_equal(request.kind, HTTP_PROXY_FORWARD);
                assert_true(request.body == cases[i].body);
        }
}

/* Beginnings of chunks, and the result: the bytes up to the next one, 0 for more, or -1. */
static const struct {
        const char *text;
        bool first, last;
        int64_t result;
} chunks[] = {
        { "5\r\nhello\r\n", true, false, 8 },
        { "\r\nFf\r\n", false, false, 6 + 255 },
        { "0\r\n\r\n", true, true, 5 },
        { "\r\n000\r\n\r\nGET", false, true, 9 },
        { "\r\nfffffffffffffff\r\n", false, false, 19 + 0xfffffffffffffff },
        { "", true, false, 0 },
        { "\r", false, false, 0 },
        { "\r\n", false, false, 0 },
        { "5", true, false, 0 },
        { "5\r", true, false, 0 },
        { "0\r\n", true, false, 0 },
        { "5\r\n", false, false, -1 },
        { "x", true, false, -1 },
        { "\r\n\r\n", false, false, -1 },
        { "5\n", true, false, -1 },
        { "5 \r\n", true, false, -1 },
        { "5;a=b\r\n", true, false, -1 },
        { "0x5\r\n", true, false, -1 },
        { "-5\r\n", true, false, -1 },
        { "0\r\nHost: b\r\n\r\n", true, false, -1 },
        { "1000000000000000\r\n", true, false, -1 },
        { "00000000000000005\r\n", true, false, -1 },
};

static void test_chunks(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(chunks); i++) {
                const size_t length = strlen(chunks[i].text);
                uint8_t *copy = malloc(length + 1);
                uint64_t size = 0;
                bool last = false;
                int r;

                assert_non_null(copy);
                memcpy(copy + 1, chunks[i].text, length);
                r = http_chunk_read(copy + 1, length, chunks[i].first, &size, &last);
                if (r < 0 ? chunks[i].result != -1
                          : chunks[i].result != (int64_t)size || last != chunks[i].last)
                        fail_msg("%s: %d %lu", chunks[i].text, r, (unsigned long)size);
                assert_true(length <= HTTP_CHUNK_HEAD || r != 0);
                free(copy);
        }
}

/* A head without an end is refused. Reading all earlier bytes again for each new one would take two
 * billion steps. */
static void test_long(void **state) {
        static const char *const lines[] = { "abcdefgh", "a:b\r\n" };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                const size_t size = strlen(lines[i]);
                HttpProxyRequest request = { 0 };
                clock_t start = clock();

                for (size_t at = 0; at + size <= sizeof(bytes); at += size)
                        memcpy(bytes + at, lines[i], size);
                for (size_t length = 0; length <= HTTP_PROXY_MAX; length++) {
                        assert_int_equal(request.kind, HTTP_PROXY_MORE);
                        http_proxy_read(bytes, length, &request);
                }
                assert_int_equal(request.kind, HTTP_PROXY_BAD);
                assert_true(clock() - start < CLOCKS_PER_SEC / 2);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_connect), cmocka_unit_test(test_bytes_after_the_head),
                cmocka_unit_test(test_forward), cmocka_unit_test(test_bad),
                cmocka_unit_test(test_bodies),  cmocka_unit_test(test_chunks),
                cmocka_unit_test(test_more),    cmocka_unit_test(test_long),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
