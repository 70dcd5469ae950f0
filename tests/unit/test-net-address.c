/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/util.h"
#include "policy/net/address.h"

static NetAddress address_of(const char *text) {
        NetAddress address = { 0 };

        if (net_address_parse(text, strlen(text), &address) < 0)
                fail_msg("%s is no address", text);
        return address;
}

static void test_special_addresses_are_forbidden(void **state) {
        static const struct {
                const char *text, *what;
        } cases[] = {
                { "0.0.0.0", "unspecified" },
                { "0.1.2.3", "unspecified" },
                { "127.0.0.1", "loopback" },
                { "127.255.255.254", "loopback" },
                { "10.0.0.1", "private" },
                { "10.255.255.255", "private" },
                { "172.16.0.1", "private" },
                { "172.31.255.255", "private" },
                { "192.168.1.1", "private" },
                { "169.254.0.1", "link-local" },
                { "169.254.169.254", "metadata" },
                { "168.63.129.16", "metadata" },
                { "100.100.100.200", "metadata" },
                { "192.0.0.192", "metadata" },
                { "100.64.0.1", "carrier" },
                { "100.127.255.255", "carrier" },
                { "192.0.0.170", "protocol" },
                { "192.88.99.1", "6to4" },
                { "198.18.0.1", "benchmark" },
                { "198.19.255.255", "benchmark" },
                { "224.0.0.1", "multicast" },
                { "239.255.255.255", "multicast" },
                { "240.0.0.1", "reserved" },
                { "255.255.255.255", "broadcast" },
                { "::", "unspecified" },
                { "::1", "loopback" },
                { "::ffff:8.8.8.8", "IPv4" },
                { "::ffff:127.0.0.1", "IPv4" },
                { "::ffff:0:127.0.0.1", "IPv4" },
                { "::127.0.0.1", "IPv4" },
                { "64:ff9b::10.0.0.1", "NAT64" },
                { "64:ff9b::8.8.8.8", "NAT64" },
                { "64:ff9b:1::1", "NAT64" },
                { "64:ff9b:1:ffff::1", "NAT64" },
                { "64:ff9b:2::1", "outside" },
                { "100::1", "discards" },
                { "2001::1", "Teredo" },
                { "2001:0:ffff::1", "Teredo" },
                { "2001:2::1", "benchmark" },
                { "2002:7f00:1::", "6to4" },
                { "2002:a00:1::1", "6to4" },
                { "fd00:ec2::254", "metadata" },
                { "fd20:ce::254", "metadata" },
                { "fd00:c1::a9fe:a9fe", "metadata" },
                { "fd00:686f:6c74::1", "private" },
                { "fc00::1", "private" },
                { "fdff:ffff::1", "private" },
                { "fe80::1", "link-local" },
                { "febf::1", "link-local" },
                { "fec0::1", "private" },
                { "ff02::1", "multicast" },
                { "5f00::1", "outside" },
                { "4000::1", "outside" },
                { "f000::1", "outside" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const NetAddress address = address_of(cases[i].text);
                const char *what = net_address_forbidden(&address);

                if (!what || !strstr(what, cases[i].what))
                        fail_msg("%s: %s", cases[i].text, what ? what : "allowed");
        }
}

static void test_public_addresses_are_not(void **state) {
        static const char *const cases[] = {
                "1.1.1.1",      "8.8.8.8",         "9.255.255.255",      "11.0.0.0",
                "100.63.0.1",   "100.128.0.1",     "126.255.255.255",    "128.0.0.1",
                "169.253.0.1",  "169.255.0.1",     "172.15.0.1",         "172.32.0.1",
                "192.167.0.1",  "192.169.0.1",     "192.0.1.1",          "192.0.2.1",
                "198.17.0.1",   "198.20.0.1",      "198.51.100.1",       "223.255.255.255",
                "2000::1",      "2001:db8::1",     "2001:4860:4860::88", "2003::1",
                "2606:4700::1", "2a00:1450::200e",
        };
        const NetAddress none = { 0 };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const NetAddress address = address_of(cases[i]);
                const char *what = net_address_forbidden(&address);

                if (what)
                        fail_msg("%s: %s", cases[i], what);
        }
        assert_non_null(net_address_forbidden(&none));
}

static void test_unusual_forms_are_no_addresses(void **state) {
        static const char *const cases[] = {
                "",
                "1",
                "127.1",
                "127.0.1",
                "2130706433",
                "0177.0.0.1",
                "0x7f.1",
                "0x7f000001",
                "127.0.0.01",
                "127.0.0.1.",
                "256.0.0.1",
                "1.2.3.4.5",
                "1.2.3.4/8",
                " 1.2.3.4",
                "1.2.3.4 ",
                "::1%lo",
                "fe80::1%1",
                ":::1",
                "[::1]",
                "1:2:3:4:5:6:7:8:9",
                "12345::1",
                "::g",
                "1.2.3.4:80",
                "\xd9\xa1.1.1.1",
                "0000:0000:0000:0000:0000:0000:127.000.000.001:0000",
        };
        NetAddress address;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                if (net_address_parse(cases[i], strlen(cases[i]), &address) != -EINVAL)
                        fail_msg("%s", cases[i]);
        assert_int_equal(net_address_parse("1.2.3.4\0", 8, &address), -EINVAL);
}

static void test_text_of_an_address(void **state) {
        static const char *const cases[] = { "192.0.2.1", "2001:db8::1", "::1",
                                             "fd00:686f:6c74::1" };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const NetAddress address = address_of(cases[i]);
                char text[NET_ADDRESS_TEXT];

                assert_string_equal(net_address_text(&address, text), cases[i]);
        }
}

static void test_numbers_of_names(void **state) {
        static const unsigned numbers[] = { 0, 1, 255, 256, 4095, NET_NUMBERS_MAX - 1 };
        static const struct {
                uint8_t family;
                unsigned number;
                const char *text;
        } cases[] = {
                { AF_INET, 0, "198.18.1.0" },
                { AF_INET, NET_NUMBERS_MAX - 1, "198.19.0.255" },
                { AF_INET6, 0, "fd00:686f:6c74::100" },
                { AF_INET6, NET_NUMBERS_MAX - 1, "fd00:686f:6c74::1:ff" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(numbers) * 2; i++) {
                const NetAddress address = net_address_of_number(i % 2 ? AF_INET : AF_INET6,
                                                                 numbers[i / 2]);

                assert_int_equal(net_address_number(&address), numbers[i / 2]);
                assert_true(net_address_in_pool(&address));
        }
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const NetAddress address = net_address_of_number(cases[i].family, cases[i].number);
                char text[NET_ADDRESS_TEXT];

                assert_string_equal(net_address_text(&address, text), cases[i].text);
        }
}

static void test_other_addresses_have_no_number(void **state) {
        static const char *const cases[] = {
                "198.18.0.0",
                "198.18.0.1",
                "198.18.0.255",
                "198.19.1.0",
                "198.17.1.0",
                "198.20.1.0",
                "fd00:686f:6c74::",
                "fd00:686f:6c74::ff",
                "fd00:686f:6c74::1:100",
                "fd00:686f:6c74:1::100",
                "fd00:686f:6c74::1:0:0:100",
                "fd00:686f:6c74:0:0:1:0:100",
                "::ffff:198.18.1.0",
                "2001:db8::100",
        };
        const NetAddress none = { 0 };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const NetAddress address = address_of(cases[i]);

                if (net_address_number(&address) != -ENOENT)
                        fail_msg("%s", cases[i]);
        }
        assert_int_equal(net_address_number(&none), -ENOENT);
}

static void test_mapped_addresses(void **state) {
        const NetAddress mapped = address_of("::ffff:10.0.0.1"), plain = address_of("10.0.0.1");
        const NetAddress compatible = address_of("::10.0.0.1");
        NetAddress result = net_address_unmapped(&mapped);

        (void)state;
        assert_memory_equal(&result, &plain, sizeof(plain));
        result = net_address_unmapped(&compatible);
        assert_memory_equal(&result, &compatible, sizeof(result));
}

/* 0.0.0.0/0 must not reach a metadata service by accident. */
static void test_blocks_allow_special_addresses_only_on_purpose(void **state) {
        static const struct {
                const char *block;
                unsigned prefix;
                const char *address;
                bool allowed;
        } cases[] = {
                { "0.0.0.0", 0, "8.8.8.8", true },
                { "0.0.0.0", 0, "127.0.0.1", false },
                { "0.0.0.0", 0, "10.0.0.1", false },
                { "0.0.0.0", 0, "169.254.169.254", false },
                { "0.0.0.0", 0, "2001:db8::1", false },
                { "10.0.0.0", 8, "10.1.2.3", true },
                { "10.0.0.0", 7, "10.1.2.3", false },
                { "10.0.0.0", 7, "11.1.2.3", true },
                { "10.1.0.0", 16, "10.1.2.3", true },
                { "10.1.0.0", 16, "10.2.2.3", false },
                { "127.0.0.0", 8, "127.0.0.1", true },
                { "169.254.0.0", 16, "169.254.1.1", true },
                { "169.254.0.0", 16, "169.254.169.254", false },
                { "169.254.169.254", 32, "169.254.169.254", true },
                { "168.63.129.0", 24, "168.63.129.16", false },
                { "168.63.129.0", 24, "168.63.129.17", true },
                { "::", 0, "2606:4700::1", true },
                { "::", 0, "::1", false },
                { "::", 0, "fd12::1", false },
                { "::", 0, "64:ff9b::7f00:1", false },
                { "64:ff9b::", 96, "64:ff9b::7f00:1", true },
                { "fc00::", 7, "fd12::1", true },
                { "fc00::", 7, "fd00:ec2::254", false },
                { "fc00::", 6, "fd12::1", false },
                { "2001:db8::", 32, "2001:db8::1", true },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const NetAddress block = address_of(cases[i].block);
                const NetAddress address = address_of(cases[i].address);

                if (net_block_allows(&block, cases[i].prefix, &address) != cases[i].allowed)
                        fail_msg("%s/%u %s", cases[i].block, cases[i].prefix, cases[i].address);
        }
}

static void test_covering_blocks(void **state) {
        static const struct {
                const char *outer;
                unsigned outer_prefix;
                const char *inner;
                unsigned inner_prefix;
                bool covers;
        } cases[] = {
                { "0.0.0.0", 0, "0.0.0.0", 0, true },
                { "0.0.0.0", 0, "8.0.0.0", 8, true },
                { "0.0.0.0", 0, "10.0.0.0", 8, false },
                { "0.0.0.0", 0, "10.0.0.0", 7, true },
                { "10.0.0.0", 8, "10.1.0.0", 16, true },
                { "10.1.0.0", 16, "10.0.0.0", 8, false },
                { "10.0.0.0", 8, "11.0.0.0", 8, false },
                { "169.254.0.0", 16, "169.254.169.254", 32, false },
                { "169.254.0.0", 16, "169.254.169.0", 24, true },
                { "169.254.169.254", 32, "169.254.169.254", 32, true },
                { "::", 0, "fd12::", 32, false },
                { "fc00::", 7, "fd12::", 32, true },
                { "::", 0, "10.0.0.0", 8, false },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const NetAddress outer = address_of(cases[i].outer);
                const NetAddress inner = address_of(cases[i].inner);

                if (net_block_covers(&outer, cases[i].outer_prefix, &inner,
                                     cases[i].inner_prefix) != cases[i].covers)
                        fail_msg("%s/%u %s/%u", cases[i].outer, cases[i].outer_prefix,
                                 cases[i].inner, cases[i].inner_prefix);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_special_addresses_are_forbidden),
                cmocka_unit_test(test_public_addresses_are_not),
                cmocka_unit_test(test_unusual_forms_are_no_addresses),
                cmocka_unit_test(test_text_of_an_address),
                cmocka_unit_test(test_numbers_of_names),
                cmocka_unit_test(test_other_addresses_have_no_number),
                cmocka_unit_test(test_mapped_addresses),
                cmocka_unit_test(test_blocks_allow_special_addresses_only_on_purpose),
                cmocka_unit_test(test_covering_blocks),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
