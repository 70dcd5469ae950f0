/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of wire/hello.h that read HTTP, and tell it from other protocols. */
#include "hello-bytes.h"

static Bytes bytes;

typedef struct Request {
        const char *text;
        HelloKind kind;
        const char *name;
} Request;

static void check_requests(const Request *requests, size_t count) {
        for (size_t i = 0; i < count; i++) {
                Hello hello = read_bytes(requests[i].text, strlen(requests[i].text));

                if (hello.kind != requests[i].kind)
                        print_message("%s%s\n", requests[i].text, hello.why ? hello.why : "");
                assert_int_equal(hello.kind, requests[i].kind);
                assert_string_equal(hello.name, requests[i].name ? requests[i].name : "");
                assert_true((hello.kind == HELLO_BAD) == (hello.why != NULL));
        }
}

static void test_host(void **state) {
        static const Request requests[] = {
                { "GET / HTTP/1.1\r\nHost: A.Example\r\n\r\n", HELLO_HTTP, "a.example" },
                { "GET / HTTP/1.1\r\nhOST:\t a.example:8080 \t\r\n\r\n", HELLO_HTTP, "a.example" },
                { "GET / HTTP/1.1\r\nHost: a.example.\r\n\r\n", HELLO_HTTP, "a.example" },
                { "GET / HTTP/1.1\r\nHost: a.example:\r\n\r\n", HELLO_HTTP, "a.example" },
                { "GET / HTTP/1.1\r\nHost: 192.0.2.1:80\r\n\r\n", HELLO_HTTP, "192.0.2.1" },
                { "GET / HTTP/1.1\r\nHost: [2001:DB8::0:1]:80\r\n\r\n", HELLO_HTTP, "2001:db8::1" },
                { "GET / HTTP/1.1\r\nHost:\r\n\r\n", HELLO_HTTP, "" },
                { "GET / HTTP/1.1\r\nX: \xe4\r\n\r\n", HELLO_HTTP, "" },
                { "GET / HTTP/1.0\r\n\r\n", HELLO_HTTP, "" },
                { "POST /x?y=http://b HTTP/1.1\r\nHost: a\r\n\r\nHost: b\r\n", HELLO_HTTP, "a" },
                { "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_HTTP, "a" },
                { "\r\n\n GET / HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_HTTP, "a" },
                { "m-search! / HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_HTTP, "a" },
        };

        (void)state;
        check_requests(requests, ELEMENTSOF(requests));
}

static void test_http_pieces(void **state) {
        static const char text[] = "\r\nGET / HTTP/1.1\r\nAccept: */*\r\nHost: a.example\r\n\r\n";

        (void)state;
        bytes.length = 0;
        add(&bytes, text, sizeof(text) - 1);
        read_slowly(&bytes, HELLO_HTTP, "a.example");
        for (size_t cut = 0; cut < bytes.length; cut++) {
                Hello hello = { 0 };

                hello_read(bytes.at, cut, &hello);
                hello_read(bytes.at, bytes.length, &hello);
                assert_int_equal(hello.kind, HELLO_HTTP);
        }
}

static void test_bad_hosts(void **state) {
        static const Request requests[] = {
                { "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost:\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: a:80@b\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: a:80:90\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: a:0\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: a:+80\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: a:000080\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: [::1]80\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: [192.0.2.1]\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: 127.1\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: a\xe4\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: a%2eb\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost : a\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\n Host: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nX: y\r\n Host: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost:\r\n a\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nX: y\rHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nX\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\n: x\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nX: y\x01\r\n\r\n", HELLO_BAD, NULL },
        };

        (void)state;
        check_requests(requests, ELEMENTSOF(requests));
}

static void test_folding(void **state) {
        static const char text[] = "GET / HTTP/1.1\r\nX: y\r\n Host: a\r\n\r\n";

        (void)state;
        assert_string_equal(read_bytes(text, sizeof(text) - 1).why,
                            "a field that continues on the next line");
}

static void test_line_feeds(void **state) {
        static const Request requests[] = {
                { "GET / HTTP/1.1\nHost: a\n\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: a\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\nHost: a\r\n\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\n\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\n\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
        };

        (void)state;
        check_requests(requests, ELEMENTSOF(requests));
}

static void test_request_lines(void **state) {
        static const Request requests[] = {
                { "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET / http/1.1\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.10\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/2.0\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/0.9\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET a HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET / HTTP/1.1", HELLO_MORE, NULL },
                { "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", HELLO_BAD, NULL },
                { "connect a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", HELLO_BAD, NULL },
                { "CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
        };

        (void)state;
        check_requests(requests, ELEMENTSOF(requests));
}

static void test_uris(void **state) {
        static const Request requests[] = {
                { "GET http://A/ HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_HTTP, "a" },
                { "GET HTTP://a:80?x HTTP/1.1\r\nHost: a:90\r\n\r\n", HELLO_HTTP, "a" },
                { "GET https://a HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_HTTP, "a" },
                { "GET http://a/ HTTP/1.0\r\n\r\n", HELLO_HTTP, "a" },
                { "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET http://b@a/ HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET http://a@b/ HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET http://a\\@b/ HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET http:/a HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET http://a#b/ HTTP/1.1\r\nHost: a\r\n\r\n", HELLO_BAD, NULL },
                { "GET http://b/\r\n", HELLO_BAD, NULL },
                { "GET HTTPS://b/\n", HELLO_BAD, NULL },
        };

        (void)state;
        check_requests(requests, ELEMENTSOF(requests));
}

static void test_nul(void **state) {
        static const struct {
                const char *text;
                size_t length;
                HelloKind kind;
        } cases[] = {
                { "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", 28, HELLO_BAD },
                { "GET / HTTP/1.1\r\nHost: a\0\r\n\r\n", 28, HELLO_BAD },
                { "GET / HTTP/1.1\r\nHost\0: a\r\n\r\n", 28, HELLO_BAD },
                { "GET\0/ HTTP/1.1\r\n", 16, HELLO_OTHER },
                { "\0GET / HTTP/1.1\r\n", 16, HELLO_OTHER },
                { "0032git-upload-pack /p\0host=a\0", 30, HELLO_OTHER },
                { "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c", 16, HELLO_BAD },
                { "\r\n\r\n\0", 5, HELLO_BAD },
                { "\r\n\0", 3, HELLO_OTHER },
                { "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", 36, HELLO_BAD },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_int_equal(read_bytes(cases[i].text, cases[i].length).kind, cases[i].kind);
}

static void test_other_protocols(void **state) {
        static const Request requests[] = {
                { "SSH-2.0-OpenSSH_9.9\r\n", HELLO_OTHER, NULL },
                { "EHLO a.example\r\n", HELLO_OTHER, NULL },
                { "*1\r\n$4\r\nPING\r\n", HELLO_OTHER, NULL },
                { "PING\r\n", HELLO_OTHER, NULL },
                { "GET key\r\n", HELLO_OTHER, NULL },
                { "GET /\r\n", HELLO_OTHER, NULL },
                { "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HELLO_OTHER, NULL },
                { "OPTIONS rtsp://b RTSP/1.0\r\n\r\n", HELLO_OTHER, NULL },
                { "\x13"
                  "BitTorrent protocol",
                  HELLO_OTHER, NULL },
                { "@RSYNCD: 31.0\n", HELLO_OTHER, NULL },
                { "{\"a\": 1}", HELLO_OTHER, NULL },
                { "HTTP/1.1 200 OK\r\n", HELLO_OTHER, NULL },
                { "ruok", HELLO_MORE, NULL },
                { "\r\n", HELLO_MORE, NULL },
                { "", HELLO_MORE, NULL },
        };

        (void)state;
        check_requests(requests, ELEMENTSOF(requests));
}

static void test_finish(void **state) {
        static const struct {
                const char *text;
                HelloKind closed, silent;
        } cases[] = {
                { "", HELLO_OTHER, HELLO_MORE },
                { "ruok", HELLO_OTHER, HELLO_OTHER },
                { "GET", HELLO_OTHER, HELLO_MORE },
                { "\r\n", HELLO_OTHER, HELLO_MORE },
                { "GET /", HELLO_OTHER, HELLO_MORE },
                { "GET http://b", HELLO_BAD, HELLO_MORE },
                { "GET / HTTP/1.1", HELLO_BAD, HELLO_MORE },
                { "GET / HTTP/1.1\r\nHost: b\r\n", HELLO_BAD, HELLO_MORE },
                { "hello world", HELLO_OTHER, HELLO_MORE },
                { "\x16\3\1", HELLO_BAD, HELLO_MORE },
                { "\x80\x2e", HELLO_BAD, HELLO_MORE },
                { "SSH-2.0-x\r\n", HELLO_OTHER, HELLO_OTHER },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                for (int closed = 0; closed < 2; closed++) {
                        const uint8_t *text = (const uint8_t *)cases[i].text;
                        size_t length = strlen(cases[i].text);
                        Hello hello = { 0 };

                        hello_read(text, length, &hello);
                        hello_finish(text, length, closed, &hello);
                        assert_int_equal(hello.kind, closed ? cases[i].closed : cases[i].silent);
                }
}

static void test_long_heads(void **state) {
        static const char *const starts[] = { "GET /", "GET / HTTP/1.1\r\nX: ", "x", "\r\n", "a " };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(starts); i++) {
                bytes.length = 0;
                add(&bytes, starts[i], strlen(starts[i]));
                while (bytes.length < HELLO_MAX + 10)
                        add(&bytes, i == 3 ? "\n" : "x", 1);
                assert_int_equal(read_bytes(bytes.at, HELLO_MAX - 1).kind, HELLO_MORE);
                assert_int_equal(read_bytes(bytes.at, HELLO_MAX).kind, HELLO_BAD);
                assert_int_equal(read_bytes(bytes.at, HELLO_MAX + 10).kind, HELLO_BAD);
        }
        /* The end comes with the last byte that is read. */
        bytes.length = 0;
        add(&bytes, "GET / HTTP/1.1\r\nHost: a\r\nX: ", 28);
        while (bytes.length < HELLO_MAX - 4)
                add(&bytes, "x", 1);
        add(&bytes, "\r\n\r\n", 4);
        assert_int_equal(read_bytes(bytes.at, HELLO_MAX).kind, HELLO_HTTP);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_host),
                cmocka_unit_test(test_http_pieces),
                cmocka_unit_test(test_bad_hosts),
                cmocka_unit_test(test_folding),
                cmocka_unit_test(test_line_feeds),
                cmocka_unit_test(test_request_lines),
                cmocka_unit_test(test_uris),
                cmocka_unit_test(test_nul),
                cmocka_unit_test(test_other_protocols),
                cmocka_unit_test(test_finish),
                cmocka_unit_test(test_long_heads),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
