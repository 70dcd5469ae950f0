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
#include "wire/socks.h"

/* Copies of the exact size, so that a sanitizer sees each read past the end. */
static int greeting(const char *bytes, size_t length, uint8_t reply[2]) {
        uint8_t *copy = malloc(length + 1);
        int r;

        assert_non_null(copy);
        memcpy(copy + 1, bytes, length);
        r = socks_greeting(copy + 1, length, reply);
        free(copy);
        return r;
}

static int request(const char *bytes, size_t length, Authority *ret) {
        uint8_t *copy = malloc(length + 1);
        int r;

        assert_non_null(copy);
        memcpy(copy + 1, bytes, length);
        r = socks_request(copy + 1, length, ret);
        free(copy);
        return r;
}

static void test_greeting(void **state) {
        static const struct {
                const char *bytes;
                size_t length;
                int result, method;
        } cases[] = {
                { "", 0, 0, -1 },
                { "\5", 1, 0, -1 },
                { "\5\1", 2, 0, -1 },
                { "\5\1\0", 3, 3, 0 },
                { "\5\2\2\0", 4, 4, 0 },
                { "\5\2\0", 3, 0, -1 },
                { "\5\1\0\5\1\0", 6, 3, 0 },
                { "\5\1\2", 3, -EACCES, 0xff },
                { "\5\1\2\0", 4, -EACCES, 0xff },
                { "\5\0", 2, -EBADMSG, -1 },
                { "\4\1\0\x50\0\0\0\1\0a\0", 11, -EBADMSG, -1 }, /* SOCKS4a */
                { "\4", 1, -EBADMSG, -1 },
                { "GET", 3, -EBADMSG, -1 },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint8_t reply[2] = { 0xee, 0xee };

                assert_int_equal(greeting(cases[i].bytes, cases[i].length, reply), cases[i].result);
                assert_int_equal(reply[0], cases[i].method < 0 ? 0xee : 5);
                assert_int_equal(reply[1], cases[i].method < 0 ? 0xee : cases[i].method);
        }
}

static void test_request(void **state) {
        static const struct {
                const char *bytes;
                size_t length;
                const char *host;
                int family, port;
        } cases[] = {
                { "\5\1\0\3\x09"
                  "A.Example\1\xbb",
                  16, "a.example", 0, 443 },
                { "\5\1\0\1\xc0\0\2\1\0\x50", 10, "192.0.2.1", AF_INET, 80 },
                { "\5\1\0\4\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1\xff\xff", 22, "2001:db8::1",
                  AF_INET6, 65535 },
                { "\5\1\0\3\x09"
                  "192.0.2.1\0\x16",
                  16, "192.0.2.1", AF_INET, 22 },
                { "\5\1\0\3\3::1\0\x16", 10, "::1", AF_INET6, 22 },
        };
        Authority a;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                for (size_t length = 0; length < cases[i].length; length++)
                        assert_int_equal(request(cases[i].bytes, length, &a), 0);
                assert_int_equal(request(cases[i].bytes, cases[i].length, &a), cases[i].length);
                assert_string_equal(a.host, cases[i].host);
                assert_int_equal(a.address.family, cases[i].family);
                assert_int_equal(a.port, cases[i].port);
        }
}

static void test_bad_requests(void **state) {
        static const struct {
                const char *bytes;
                size_t length;
                int code;
        } cases[] = {
                { "\4\1\0\x50\0\0\0\1\0a\0", 11, SOCKS_FAILURE },
                { "\5\2\0\1\xc0\0\2\1\0\x50", 10, SOCKS_NO_COMMAND },
                { "\5\3", 2, SOCKS_NO_COMMAND },
                { "\5\xf0\0\3", 4, SOCKS_NO_COMMAND },
                { "\5\1\1", 3, SOCKS_FAILURE },
                { "\5\1\0\0", 4, SOCKS_NO_ADDRESS_TYPE },
                { "\5\1\0\2", 4, SOCKS_NO_ADDRESS_TYPE },
                { "\5\1\0\5", 4, SOCKS_NO_ADDRESS_TYPE },
                { "\5\1\0\3\0\0\x50", 7, SOCKS_FAILURE },
                { "\5\1\0\3\1a\0\0", 8, SOCKS_FAILURE },
                { "\5\1\0\3\3a\0b\0\x50", 10, SOCKS_FAILURE },
                { "\5\1\0\3\3a b\0\x50", 10, SOCKS_FAILURE },
                { "\5\1\0\3\3a:b\0\x50", 10, SOCKS_FAILURE },
                { "\5\1\0\3\3a@b\0\x50", 10, SOCKS_FAILURE },
                { "\5\1\0\3\2\xc3\xa4\0\x50", 9, SOCKS_FAILURE },
                { "\5\1\0\3\5"
                  "127.1\0\x50",
                  12, SOCKS_FAILURE },
                { "\5\1\0\3\5[::1]\0\x50", 12, SOCKS_FAILURE },
        };
        Authority a = { .port = 7 };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_int_equal(request(cases[i].bytes, cases[i].length, &a), -cases[i].code);
        assert_int_equal(a.port, 7);
}

static void test_long_names(void **state) {
        char bytes[300] = "\5\1\0\3";
        Authority a;

        (void)state;
        for (int length = 253; length < 256; length++) {
                memset(bytes + 5, 'a', sizeof(bytes) - 5);
                for (int i = 5 + 50; i < 5 + 250; i += 50)
                        bytes[i] = '.';
                bytes[4] = (char)length;
                assert_int_equal(request(bytes, (size_t)length + 7, &a),
                                 length == 253 ? length + 7 : -SOCKS_FAILURE);
        }
}

static void test_reply(void **state) {
        uint8_t reply[SOCKS_REPLY_MAX];

        (void)state;
        assert_int_equal(socks_reply(socks_code(0), reply), 10);
        assert_memory_equal(reply, "\5\0\0\1\0\0\0\0\0\0", 10);
        assert_int_equal(socks_code(ECONNREFUSED), SOCKS_REFUSED);
        assert_int_equal(socks_code(ETIMEDOUT), SOCKS_TIMED_OUT);
        assert_int_equal(socks_code(EIO), SOCKS_FAILURE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_greeting),     cmocka_unit_test(test_request),
                cmocka_unit_test(test_bad_requests), cmocka_unit_test(test_long_names),
                cmocka_unit_test(test_reply),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
