/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/util.h"
#include "wire/upstream-wire.h"
#include "policy/net/upstream.h"

static void test_url(void **state) {
        static const struct {
                const char *url, *name, *login;
                int family;
                uint16_t port;
        } rows[] = {
                { "http://Proxy.Example.:3128", "proxy.example", "", 0, 3128 },
                { "http://10.0.0.1:1/", "", "", AF_INET, 1 },
                { "http://[2001:db8::1]:65535", "", "", AF_INET6, 65535 },
                { "http://a:b@p:1", "p", "a:b", 0, 1 },
                { "http://a@p:1", "p", "a:", 0, 1 },
                { "http://a:@p:1", "p", "a:", 0, 1 },
                { "http://a%40b:c%3a@d@p:1", "p", "a@b:c:@d", 0, 1 },
                { "http://a:[x]@p:1", "p", "a:[x]", 0, 1 },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const char *why = NULL;
                NetUpstream url;

                if (net_upstream_parse(rows[i].url, &url, &why) < 0)
                        fail_msg("%s %s", rows[i].url, why);
                assert_string_equal(url.name, rows[i].name);
                assert_string_equal(url.login, rows[i].login);
                assert_int_equal(url.address.family, rows[i].family);
                assert_int_equal(url.port, rows[i].port);
        }
}

static void test_bad_url(void **state) {
        static const char *const urls[] = {
                "",
                "p:1",
                "https://p:1",
                "HTTP://p:1",
                "http://",
                "http://:1",
                "http://p",
                "http://p:",
                "http://p:0",
                "http://p:01",
                "http://p:65536",
                "http://p:1x",
                "http://p:1//",
                "http://p:1/a",
                "http://p q:1",
                "http://[p]:1",
                "http://[10.0.0.1]:1",
                "http://2001:db8::1:1",
                "http://@p:1",
                "http://:b@p:1",
                "http://a%@p:1",
                "http://a%4@p:1",
                "http://a%4g@p:1",
                "http://a%00b@p:1",
                "http://a%0ab@p:1",
                "http://a:b@",
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(urls); i++) {
                const char *why = NULL;

                if (net_upstream_check(urls[i], &why) != -EINVAL)
                        fail_msg("%s", urls[i]);
                assert_non_null(why);
        }
}

static void test_long_login(void **state) {
        char url[NET_LOGIN_MAX + 32] = "http://";
        const char *why;

        (void)state;
        memset(url + 7, 'a', NET_LOGIN_MAX + 1);
        strcpy(url + 7 + NET_LOGIN_MAX - 1, "@p:1");
        assert_int_equal(net_upstream_check(url, &why), 0);
        memset(url + 7, 'a', NET_LOGIN_MAX + 1);
        strcpy(url + 7 + NET_LOGIN_MAX, "@p:1");
        assert_int_equal(net_upstream_check(url, &why), -EINVAL);
}

static void test_mask(void **state) {
        _cleanup_free_ char *plain = net_upstream_mask("http://p:1"),
                            *masked = net_upstream_mask("http://a:b@c@p:1");

        (void)state;
        assert_string_equal(plain, "http://p:1");
        assert_string_equal(masked, "http://***@p:1");
}

static void test_write(void **state) {
        char request[UPSTREAM_REQUEST_MAX];
        size_t length;

        (void)state;
        length = upstream_write("a.b", 443, "", request);
        assert_int_equal(length, strlen(request));
        assert_string_equal(request, "CONNECT a.b:443 HTTP/1.1\r\nHost: a.b:443\r\n\r\n");
        (void)upstream_write("2001:db8::1", 1, "YTpi", request);
        assert_string_equal(request, "CONNECT [2001:db8::1]:1 HTTP/1.1\r\nHost: [2001:db8::1]:1\r\n"
                                     "Proxy-Authorization: Basic YTpi\r\n\r\n");
}

/* Gives the bytes one by one. Returns the last result. */
static int read_slowly(const char *text, size_t *seen, unsigned *status) {
        int r = 0;

        *seen = 0;
        for (size_t i = 1; r == 0 && i <= strlen(text); i++)
                r = upstream_read((const uint8_t *)text, i, seen, status);
        return r;
}

static void test_read(void **state) {
        static const struct {
                const char *text;
                int result;
                unsigned status;
        } rows[] = {
                { "HTTP/1.1 200 OK\r\n\r\n", 1, 200 },
                { "HTTP/1.0 407\r\nA: b\r\n\r\n", 1, 407 },
                { "HTTP/1.1 502 x\n\n", 1, 502 },
                { "HTTP/1.1 200 OK\r\nA: b\r\n", 0, 0 },
                { "HTTP/1.", 0, 0 },
                { "SSH-2.0-x\r\n", -EBADMSG, 0 },
                { "HTTP/2 200\r\n\r\n", -EBADMSG, 0 },
                { "HTTP/1.1 2000\r\n\r\n", -EBADMSG, 0 },
                { "HTTP/1.1  200\r\n\r\n", -EBADMSG, 0 },
                { "HTTP/1.1\r\n\r\n", -EBADMSG, 0 },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                unsigned status = 0;
                size_t seen;

                if (read_slowly(rows[i].text, &seen, &status) != rows[i].result)
                        fail_msg("%s", rows[i].text);
                assert_int_equal(status, rows[i].status);
                if (rows[i].result > 0)
                        assert_int_equal(seen, strlen(rows[i].text));
        }
}

static void test_read_leaves_the_rest(void **state) {
        static const char text[] = "HTTP/1.1 200 OK\r\n\r\nSSH-2.0-x\r\n\r\n";
        unsigned status = 0;
        size_t seen = 0;

        (void)state;
        assert_int_equal(upstream_read((const uint8_t *)text, strlen(text), &seen, &status), 1);
        assert_string_equal(text + seen, "SSH-2.0-x\r\n\r\n");
}

static void test_endless_reply(void **state) {
        static char text[UPSTREAM_REPLY_MAX] = "HTTP/1.1 200 ";
        unsigned status = 0;
        size_t seen = 0;

        (void)state;
        memset(text + 13, 'a', sizeof(text) - 13);
        assert_int_equal(upstream_read((uint8_t *)text, sizeof(text) - 1, &seen, &status), 0);
        assert_int_equal(upstream_read((uint8_t *)text, sizeof(text), &seen, &status), -EBADMSG);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_url),
                cmocka_unit_test(test_bad_url),
                cmocka_unit_test(test_long_login),
                cmocka_unit_test(test_mask),
                cmocka_unit_test(test_write),
                cmocka_unit_test(test_read),
                cmocka_unit_test(test_read_leaves_the_rest),
                cmocka_unit_test(test_endless_reply),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
