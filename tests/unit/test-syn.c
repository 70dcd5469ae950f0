/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/util.h"
#include "wire/syn.h"

/* Ports 4660 and 443, sequence number 0x01020304, flags SYN. */
#define TCP "\x12\x34\x01\xbb\1\2\3\4\0\0\0\0\x50\x02"
#define HEAD4 "\x45\0\0\x3c\0\1\x40\0\x40\6\0\0"
#define HEAD6 "\x60\0\0\0\0\x28\6\x40"
#define ADDRESSES4 "\xc6\x12\0\1\xc6\x12\1\0"
#define OWN6 "\xfd\0\x68\x6f\x6c\x74\0\0\0\0\0\0\0\0\0"

static const char packet4[] = HEAD4 ADDRESSES4 TCP;
static const char packet6[] = HEAD6 OWN6 "\1" OWN6 "\2" TCP;

/* Reads a copy of the exact size, so that a sanitizer sees each read past the end. */
static int read_packet(const char *bytes, size_t length, Syn *ret, uint32_t *ret_sequence) {
        uint8_t *copy = malloc(length + 1);
        int r;

        assert_non_null(copy);
        memcpy(copy + 1, bytes, length);
        r = syn_read(copy + 1, length, ret, ret_sequence);
        free(copy);
        return r;
}

static void check_ends(const Syn *syn, uint32_t sequence, const char *from, const char *to) {
        char text[NET_ADDRESS_TEXT];

        assert_string_equal(net_address_text(&syn->from, text), from);
        assert_string_equal(net_address_text(&syn->to, text), to);
        assert_int_equal(syn->from_port, 0x1234);
        assert_int_equal(syn->to_port, 443);
        assert_int_equal(sequence, 0x01020304);
}

static void test_ipv4(void **state) {
        uint32_t sequence;
        Syn syn;

        (void)state;
        assert_int_equal(read_packet(packet4, sizeof(packet4) - 1, &syn, &sequence), 0);
        check_ends(&syn, sequence, "198.18.0.1", "198.18.1.0");
}

/* With options, the IP header is longer. */
static void test_ipv4_options(void **state) {
        static const char packet[] = "\x46\0\0\x40\0\1\x40\0\x40\6\0\0" ADDRESSES4 "\1\1\1\0" TCP;
        uint32_t sequence;
        Syn syn;

        (void)state;
        assert_int_equal(read_packet(packet, sizeof(packet) - 1, &syn, &sequence), 0);
        check_ends(&syn, sequence, "198.18.0.1", "198.18.1.0");
}

static void test_ipv6(void **state) {
        uint32_t sequence;
        Syn syn;

        (void)state;
        assert_int_equal(read_packet(packet6, sizeof(packet6) - 1, &syn, &sequence), 0);
        check_ends(&syn, sequence, "fd00:686f:6c74::1", "fd00:686f:6c74::2");
}

static void test_cut_packets(void **state) {
        uint32_t sequence;
        Syn syn;

        (void)state;
        for (size_t length = 0; length < sizeof(packet4) - 1; length++)
                assert_int_equal(read_packet(packet4, length, &syn, &sequence), -EBADMSG);
        for (size_t length = 0; length < sizeof(packet6) - 1; length++)
                assert_int_equal(read_packet(packet6, length, &syn, &sequence), -EBADMSG);
}

/* Each case changes one byte of a good packet. */
static void test_other_packets(void **state) {
        static const struct {
                bool six;
                size_t offset;
                char byte;
        } cases[] = {
                { false, 0, '\x55' },  /* version 5 */
                { false, 0, '\x44' },  /* a header of 16 bytes */
                { false, 0, '\x4f' },  /* a header of 60 bytes, which end too early */
                { false, 6, '\x20' },  /* more fragments follow */
                { false, 7, '\1' },    /* a later fragment */
                { false, 9, '\x11' },  /* UDP */
                { false, 33, '\x12' }, /* SYN and ACK */
                { false, 33, '\x10' }, /* ACK */
                { false, 33, '\x04' }, /* RST */
                { false, 33, '\x03' }, /* SYN and FIN */
                { true, 6, '\0' },     /* hop-by-hop options */
                { true, 6, '\x2b' },   /* a routing header */
                { true, 6, '\x2c' },   /* a fragment */
                { true, 53, '\x12' },  /* SYN and ACK */
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char packet[sizeof(packet6)];
                const size_t length = cases[i].six ? sizeof(packet6) - 1 : sizeof(packet4) - 1;
                uint32_t sequence;
                Syn syn;

                memcpy(packet, cases[i].six ? packet6 : packet4, length);
                packet[cases[i].offset] = cases[i].byte;
                assert_int_equal(read_packet(packet, length, &syn, &sequence), -EBADMSG);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ipv4),          cmocka_unit_test(test_ipv4_options),
                cmocka_unit_test(test_ipv6),          cmocka_unit_test(test_cut_packets),
                cmocka_unit_test(test_other_packets),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
