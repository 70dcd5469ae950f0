/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>

#include <cmocka.h>

#include "base/util.h"
#include "policy/net/ports.h"

static void test_published_ports(void **state) {
        static const struct {
                const char *text, *address; /* NULL: refused */
                uint16_t host, inside;
        } published[] = {
                { "8080:3000", "127.0.0.1", 8080, 3000 },
                { "0:3000", "127.0.0.1", 0, 3000 },
                { "0.0.0.0:80:65535", "0.0.0.0", 80, 65535 },
                { "[::1]:8080:3000", "::1", 8080, 3000 },
                { "[::]:0:1", "::", 0, 1 },
                { "", NULL, 0, 0 },
                { "8080", NULL, 0, 0 },
                { "8080:", NULL, 0, 0 },
                { ":8080", NULL, 0, 0 },
                { "8080:0", NULL, 0, 0 },
                { "65536:80", NULL, 0, 0 },
                { "080:80", NULL, 0, 0 },
                { "80:80:80", NULL, 0, 0 },
                { "80:80/tcp", NULL, 0, 0 },
                { "80:80 ", NULL, 0, 0 },
                { "-1:80", NULL, 0, 0 },
                { "::1:80:80", NULL, 0, 0 },
                { "[::1:80:80", NULL, 0, 0 },
                { "[::1]", NULL, 0, 0 },
                { "[::1]80:80", NULL, 0, 0 },
                { "[127.0.0.1]:80:80", NULL, 0, 0 },
                { "127.1:80:80", NULL, 0, 0 },
                { "localhost:80:80", NULL, 0, 0 },
                { "127.0.0.1", NULL, 0, 0 },
                { "127.0.0.1:80", NULL, 0, 0 },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(published); i++) {
                char text[NET_ADDRESS_TEXT];
                const char *why = NULL;
                NetPort port = { 0 };

                if (net_publish_parse(published[i].text, &port, &why) !=
                    (published[i].address ? 0 : -EINVAL))
                        fail_msg("%s", published[i].text);
                assert_int_equal(!published[i].address, why != NULL);
                if (!published[i].address)
                        continue;
                assert_string_equal(net_address_text(&port.address, text), published[i].address);
                assert_int_equal(port.host, published[i].host);
                assert_int_equal(port.inside, published[i].inside);
        }
}

static void test_imported_ports(void **state) {
        static const char *const refused[] = {
                "",       "0",   "65536", "80:", "80:0", ":80",      "80:80:", "a",
                "80/tcp", "080", "80 ",   "+80", "1-2",  "[::1]:80", "::1:80", "99999999999"
        };
        const char *why = NULL;
        NetPort port = { 0 };

        (void)state;
        assert_int_equal(net_import_parse("5432", &port, &why), 0);
        assert_true(port.host == 5432 && port.inside == 5432);
        assert_int_equal(net_import_parse("5432:1", &port, &why), 0);
        assert_true(port.host == 5432 && port.inside == 1);
        for (size_t i = 0; i < ELEMENTSOF(refused); i++)
                if (net_import_parse(refused[i], &port, &why) != -EINVAL)
                        fail_msg("%s", refused[i]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_published_ports),
                cmocka_unit_test(test_imported_ports),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
