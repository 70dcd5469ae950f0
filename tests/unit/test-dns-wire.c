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
#include "wire/dns-wire.h"

/* --- queries --- */

typedef struct Message {
        uint8_t bytes[8192];
        size_t length;
} Message;

static void add(Message *m, const void *bytes, size_t length) {
        memcpy(m->bytes + m->length, bytes, length);
        m->length += length;
}

static void add16(Message *m, unsigned value) {
        const uint8_t bytes[] = { (uint8_t)(value >> 8), (uint8_t)value };

        add(m, bytes, 2);
}

static void add_label(Message *m, const char *label, size_t length) {
        const uint8_t size = (uint8_t)length;

        add(m, &size, 1);
        add(m, label, length);
}

static void add_name(Message *m, const char *name) {
        while (*name) {
                size_t length = strcspn(name, ".");

                add_label(m, name, length);
                name += length + (name[length] == '.');
        }
        add(m, "", 1);
}

static Message header(unsigned flags, unsigned questions, unsigned additional) {
        Message m = { 0 };

        add16(&m, 0x1234);
        add16(&m, flags);
        add16(&m, questions);
        add16(&m, 0);
        add16(&m, 0);
        add16(&m, additional);
        return m;
}

static Message query(const char *name, unsigned type) {
        Message m = header(0x0100, 1, 0);

        add_name(&m, name);
        add16(&m, type);
        add16(&m, 1);
        return m;
}

static void add_opt(Message *m, unsigned size, unsigned version, unsigned flags, unsigned data) {
        m->bytes[11]++;
        add(m, "", 1);
        add16(m, DNS_OPT);
        add16(m, size);
        add16(m, version);
        add16(m, flags);
        add16(m, data);
        for (unsigned i = 0; i < data; i++)
                add(m, "x", 1);
}

static int parse(const Message *m, DnsQuery *ret) {
        /* A copy of the exact size, so that a sanitizer sees each read past the end. */
        static uint8_t *copy;

        free(copy);
        copy = malloc(m->length + 1);
        assert_non_null(copy);
        memmove(copy + 1, m->bytes, m->length);
        return dns_query_parse(copy + 1, m->length, ret);
}

static void test_query(void **state) {
        Message m = query("Packages.EXAMPLE.org", DNS_AAAA);
        DnsQuery q;

        (void)state;
        assert_int_equal(parse(&m, &q), 0);
        assert_int_equal(q.id, 0x1234);
        assert_int_equal(q.type, DNS_AAAA);
        assert_string_equal(q.name, "packages.example.org");
        assert_false(q.edns);
        assert_int_equal(q.reply_max, 512);
        assert_int_equal(q.question_length, m.length - 12);
        assert_memory_equal(q.question, m.bytes + 12, q.question_length);
}

static void test_short_and_replies(void **state) {
        Message m = query("a.example", DNS_A), full = m;
        DnsQuery q;

        (void)state;
        for (m.length = 0; m.length < full.length; m.length++)
                assert_int_equal(parse(&m, &q), m.length < 12 ? -EBADMSG : DNS_FORMERR);
        full.bytes[2] |= 0x80;
        assert_int_equal(parse(&full, &q), -EBADMSG);
}

static void test_counts(void **state) {
        static const int refused[] = { 4, 5, 6, 7, 8, 9 };
        DnsQuery q;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
                Message m = query("a.example", DNS_A);

                m.bytes[refused[i]]++;
                assert_int_equal(parse(&m, &q), DNS_FORMERR);
                assert_null(q.question);
                assert_int_equal(q.id, 0x1234);
        }
        for (int opcode = 1; opcode < 16; opcode++) {
                Message m = query("a.example", DNS_A);

                m.bytes[2] |= (uint8_t)(opcode << 3);
                assert_int_equal(parse(&m, &q), DNS_NOTIMP);
        }
}

static void test_several_questions(void **state) {
        Message m = query("a.example", DNS_A);
        DnsQuery q;

        (void)state;
        m.bytes[5] = 2;
        add_name(&m, "b.example");
        add16(&m, DNS_A);
        add16(&m, 1);
        assert_int_equal(parse(&m, &q), DNS_FORMERR);
        m.bytes[5] = 0;
        m.length = 12;
        assert_int_equal(parse(&m, &q), DNS_FORMERR);
}

static void test_labels(void **state) {
        char label[64];
        DnsQuery q;
        Message m = header(0x0100, 1, 0);

        (void)state;
        memset(label, 'a', sizeof(label));
        add_label(&m, label, 63);
        add_name(&m, "example");
        add16(&m, DNS_A);
        add16(&m, 1);
        assert_int_equal(parse(&m, &q), 0);
        assert_int_equal(strlen(q.name), 63 + 8);

        m = header(0x0100, 1, 0);
        add_label(&m, label, 64);
        add_name(&m, "example");
        add16(&m, DNS_A);
        add16(&m, 1);
        assert_int_equal(parse(&m, &q), DNS_FORMERR);
}

/* Adds a name with this number of bytes as text. */
static Message long_query(size_t length) {
        Message m = header(0x0100, 1, 0);
        char label[63];

        memset(label, 'a', sizeof(label));
        while (length > 63) {
                add_label(&m, label, length == 64 ? 62 : 63);
                length -= length == 64 ? 63 : 64;
        }
        add_label(&m, label, length);
        add(&m, "", 1);
        add16(&m, DNS_A);
        add16(&m, 1);
        return m;
}

static void test_long_names(void **state) {
        DnsQuery q;
        Message m;

        (void)state;
        m = long_query(253);
        assert_int_equal(m.length, 12 + 255 + 4);
        assert_int_equal(parse(&m, &q), 0);
        assert_int_equal(strlen(q.name), 253);
        m = long_query(254);
        assert_int_equal(parse(&m, &q), DNS_FORMERR);
        m = long_query(4000);
        assert_int_equal(parse(&m, &q), DNS_FORMERR);
}

/* No name stands before the question, so a pointer in it leads to itself or to the header. */
static void test_pointers(void **state) {
        static const unsigned pointers[] = { 0, 4, 11, 12, 13, 14, 0x3fff };
        DnsQuery q;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(pointers); i++)
                for (int label = 0; label < 2; label++) {
                        Message m = header(0x0100, 1, 0);

                        if (label)
                                add_label(&m, "a", 1);
                        add16(&m, 0xc000 | pointers[i]);
                        add16(&m, DNS_A);
                        add16(&m, 1);
                        assert_int_equal(parse(&m, &q), DNS_FORMERR);
                }
        for (int type = 0x40; type < 0xc0; type += 0x40) {
                Message m = query("a.example", DNS_A);

                m.bytes[12] |= (uint8_t)type;
                assert_int_equal(parse(&m, &q), DNS_FORMERR);
        }
}

static void test_odd_names(void **state) {
        static const struct {
                const char *label;
                size_t length;
        } labels[] = { { "a.b", 3 },       { "a.", 2 },       { ".", 1 },   { "a\0b", 3 },
                       { "\xc3\xa4", 2 },  { "a b", 3 },      { "a/b", 3 }, { "*", 1 },
                       { "user@host", 9 }, { "\xff\xff", 2 }, { "a\n", 2 }, { "a:1", 3 } };
        DnsQuery q;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(labels); i++) {
                Message m = header(0x0100, 1, 0);

                add_label(&m, labels[i].label, labels[i].length);
                add_name(&m, "example");
                add16(&m, DNS_A);
                add16(&m, 1);
                assert_int_equal(parse(&m, &q), DNS_NXDOMAIN);
                assert_string_equal(q.name, "");
                assert_int_equal(q.question_length, m.length - 12);
        }
}

static void test_dot_at_the_end_of_the_last_label(void **state) {
        Message m = header(0x0100, 1, 0);
        DnsQuery q;

        (void)state;
        add_label(&m, "example", 7);
        add_label(&m, "com.", 4);
        add(&m, "", 1);
        add16(&m, DNS_A);
        add16(&m, 1);
        assert_int_equal(parse(&m, &q), DNS_NXDOMAIN);
}

static void test_root(void **state) {
        Message m = query("", 2);
        DnsQuery q;

        (void)state;
        assert_int_equal(parse(&m, &q), DNS_NXDOMAIN);
        assert_int_equal(q.question_length, 5);
}

static void test_class(void **state) {
        Message m = query("version.bind", 16);
        DnsQuery q;

        (void)state;
        m.bytes[m.length - 1] = 3;
        assert_int_equal(parse(&m, &q), DNS_NOTIMP);
}

static void test_trailing_bytes(void **state) {
        Message m = query("a.example", DNS_A);
        DnsQuery q;

        (void)state;
        add(&m, "x", 1);
        assert_int_equal(parse(&m, &q), DNS_FORMERR);
        m = query("a.example", DNS_A);
        add_opt(&m, 1232, 0, 0, 0);
        add(&m, "", 1);
        assert_int_equal(parse(&m, &q), DNS_FORMERR);
        m = query("a.example", DNS_A);
        m.bytes[10] = m.bytes[11] = 0xff;
        assert_int_equal(parse(&m, &q), DNS_FORMERR);
}

static void test_edns(void **state) {
        static const struct {
                unsigned size, wanted;
        } sizes[] = { { 0, 512 }, { 511, 512 }, { 600, 600 }, { 1232, 1232 }, { 65535, 1232 } };
        Message m;
        DnsQuery q;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
                m = query("a.example", DNS_A);
                add_opt(&m, sizes[i].size, 0, 0x8000, 12);
                assert_int_equal(parse(&m, &q), 0);
                assert_true(q.edns);
                assert_true(q.dnssec);
                assert_int_equal(q.reply_max, sizes[i].wanted);
        }
        m = query("a.example", DNS_A);
        add_opt(&m, 1232, 1, 0, 0);
        assert_int_equal(parse(&m, &q), DNS_BADVERS);
        m = query("a.example", DNS_A);
        add_opt(&m, 1232, 0, 0, 0);
        add_opt(&m, 1232, 0, 0, 0);
        assert_int_equal(parse(&m, &q), DNS_FORMERR);
        m = query("a.example", DNS_A);
        add_opt(&m, 1232, 0, 0, 10);
        m.length--;
        assert_int_equal(parse(&m, &q), DNS_FORMERR);
}

/* Other records, such as a signature, are skipped. Their names may have pointers. */
static void test_other_records(void **state) {
        Message m = query("a.example", DNS_A);
        DnsQuery q;

        (void)state;
        m.bytes[11] = 2;
        add16(&m, 0xc00c);
        add16(&m, 250);
        add16(&m, 255);
        add16(&m, 0);
        add16(&m, 0);
        add16(&m, 3);
        add(&m, "abc", 3);
        add16(&m, 0xffff); /* A pointer past the end of the message. */
        add16(&m, 250);
        add16(&m, 255);
        add16(&m, 0);
        add16(&m, 0);
        add16(&m, 0);
        assert_int_equal(parse(&m, &q), 0);
        assert_false(q.edns);
        m.length -= 8;
        assert_int_equal(parse(&m, &q), DNS_FORMERR);
}

static void test_owner_of_opt(void **state) {
        Message m = query("a.example", DNS_A);
        DnsQuery q;

        (void)state;
        m.bytes[11] = 1;
        add_name(&m, "x");
        add16(&m, DNS_OPT);
        add16(&m, 1232);
        add16(&m, 0);
        add16(&m, 0);
        add16(&m, 0);
        assert_int_equal(parse(&m, &q), DNS_FORMERR);
}

static void test_stream(void **state) {
        Message m = query("a.example", DNS_A), tcp = { 0 };

        (void)state;
        add16(&tcp, (unsigned)m.length);
        add(&tcp, m.bytes, m.length);
        for (size_t length = 0; length < tcp.length; length++)
                assert_int_equal(dns_stream_next(tcp.bytes, length), 0);
        assert_int_equal(dns_stream_next(tcp.bytes, tcp.length), m.length);
        assert_int_equal(dns_stream_next(tcp.bytes, tcp.length + 5), m.length);
        assert_int_equal(dns_stream_next((const uint8_t *)"\0\0", 2), -EBADMSG);
        assert_int_equal(dns_stream_next((const uint8_t *)"\0\x0b", 2), -EBADMSG);
        assert_int_equal(dns_stream_next((const uint8_t *)"\x10\x01", 2), -EBADMSG);
        assert_int_equal(dns_stream_next((const uint8_t *)"\x10\0", 2), 0);
}

/* --- replies --- */

static unsigned get16(const uint8_t *at) {
        return (unsigned)(at[0] << 8 | at[1]);
}

static NetAddress address(const char *text) {
        NetAddress a;

        assert_int_equal(net_address_parse(text, strlen(text), &a), 0);
        return a;
}

static void test_reply(void **state) {
        Message m = query("A.example", DNS_A);
        const NetAddress answers[] = { address("fd00::1"), address("198.18.1.2") };
        uint8_t reply[DNS_REPLY_MAX];
        const uint8_t *record = reply + m.length;
        DnsQuery q;
        size_t length;

        (void)state;
        assert_int_equal(parse(&m, &q), 0);
        length = dns_reply_write(&q, 0, answers, 2, NULL, 60, reply);
        assert_int_equal(length, m.length + 16);
        assert_int_equal(get16(reply), 0x1234);
        assert_int_equal(get16(reply + 2), 0x8180);
        assert_int_equal(get16(reply + 4), 1);
        assert_int_equal(get16(reply + 6), 1);
        assert_int_equal(get16(reply + 8), 0);
        assert_int_equal(get16(reply + 10), 0);
        assert_memory_equal(reply + 12, m.bytes + 12,
                            m.length - 12); /* The reply keeps the case of the question. */
        assert_memory_equal(record, "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x12\1\2", 16);
}

static void test_negative_reply(void **state) {
        static const int codes[] = { DNS_NOERROR, DNS_NXDOMAIN };
        uint8_t reply[DNS_REPLY_MAX];
        DnsQuery q;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(codes); i++) {
                Message m = query("a.example", DNS_AAAA);
                size_t length;

                add_opt(&m, 1232, 0, 0x8000, 0);
                assert_int_equal(parse(&m, &q), 0);
                length = dns_reply_write(&q, codes[i], NULL, 0, NULL, 60, reply);
                assert_int_equal(length, m.length + 33);
                assert_int_equal(reply[3] & 15, codes[i]);
                assert_int_equal(get16(reply + 6), 0);
                assert_int_equal(get16(reply + 8), 1);
                assert_int_equal(get16(reply + 10), 1);
                assert_int_equal(reply[m.length - 11 + 2], DNS_SOA);
                assert_memory_equal(reply + length - 11, "\0\0\x29\x04\xd0\0\0\x80\0\0\0", 11);
        }
}

static void test_failed_reply(void **state) {
        Message m = query("a.example", DNS_A);
        uint8_t reply[DNS_REPLY_MAX];
        DnsQuery q;

        (void)state;
        assert_int_equal(parse(&m, &q), 0);
        assert_int_equal(dns_reply_write(&q, DNS_SERVFAIL, NULL, 0, NULL, 0, reply), m.length);
        assert_int_equal(reply[3] & 15, DNS_SERVFAIL);
        m.bytes[5] = 7;
        assert_int_equal(parse(&m, &q), DNS_FORMERR);
        assert_int_equal(dns_reply_write(&q, DNS_FORMERR, NULL, 0, NULL, 0, reply), 12);
        m = query("a.example", DNS_A);
        add_opt(&m, 1232, 1, 0, 0);
        assert_int_equal(parse(&m, &q), DNS_BADVERS);
        assert_int_equal(dns_reply_write(&q, DNS_BADVERS, NULL, 0, NULL, 0, reply), m.length);
        assert_int_equal(reply[3] & 15, 0);
        assert_int_equal(reply[m.length - 6], 1);
}

static void test_many_answers(void **state) {
        NetAddress answers[200];
        uint8_t reply[DNS_REPLY_MAX];
        DnsQuery q;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(answers); i++)
                answers[i] = address("fd00::1");
        for (int edns = 0; edns < 2; edns++) {
                Message m = query("a.example", DNS_AAAA);
                size_t length, max = edns ? 1232 : 512;

                if (edns)
                        add_opt(&m, 65535, 0, 0, 0);
                assert_int_equal(parse(&m, &q), 0);
                length = dns_reply_write(&q, 0, answers, ELEMENTSOF(answers), NULL, 1, reply);
                assert_true(length <= max && length > max - 28);
                assert_int_equal(get16(reply + 6), (length - m.length) / 28);
        }
}

static void test_pointer_reply(void **state) {
        Message m = query("0.1.18.198.in-addr.arpa", DNS_PTR);
        uint8_t reply[DNS_REPLY_MAX];
        DnsQuery q;
        size_t length;

        (void)state;
        assert_int_equal(parse(&m, &q), 0);
        length = dns_reply_write(&q, 0, NULL, 0, "a.example", 5, reply);
        assert_int_equal(length, m.length + 12 + 11);
        assert_memory_equal(reply + length - 13, "\0\x0b\1a\7example", 13);
        /* The longest name fits. */
        m = long_query(253);
        assert_int_equal(parse(&m, &q), 0);
        q.type = DNS_PTR;
        length = dns_reply_write(&q, 0, NULL, 0, q.name, 5, reply);
        if (m.length + 12 + 255 <= 512)
                assert_int_equal(length, m.length + 12 + 255);
        else
                assert_true(length <= 512);
}

static void test_reverse(void **state) {
        static const char *const bad[] = {
                "",
                "in-addr.arpa",
                "1.18.198.in-addr.arpa",
                "1.0.18.198.in-addr.arpa.",
                "9.1.0.18.198.in-addr.arpa",
                "01.0.18.198.in-addr.arpa",
                "256.0.18.198.in-addr.arpa",
                "0x1.0.18.198.in-addr.arpa",
                "1..18.198.in-addr.arpa",
                "1.0.18.198.in-addr.arpa.example",
                "1.0.18.198.ip6.arpa",
                "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.4.7.c.6.f.6.8.6.0.0.d.ip6.arpa",
                "g.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.4.7.c.6.f.6.8.6.0.0.d.f.ip6.arpa",
                "11.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.4.7.c.6.f.6.8.6.0.0.d.f.ip6.arpa",
        };
        static const char six[] =
                "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.4.7.c.6.f.6.8.6.0.0.d.f.ip6.arpa";
        NetAddress a, wanted = address("198.18.0.1");

        (void)state;
        assert_int_equal(dns_reverse_parse("1.0.18.198.in-addr.arpa", &a), 0);
        assert_memory_equal(&a, &wanted, sizeof(a));
        wanted = address("fd00:686f:6c74::1");
        assert_int_equal(dns_reverse_parse(six, &a), 0);
        assert_memory_equal(&a, &wanted, sizeof(a));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(dns_reverse_parse(bad[i], &a), -EINVAL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_query),
                cmocka_unit_test(test_short_and_replies),
                cmocka_unit_test(test_counts),
                cmocka_unit_test(test_several_questions),
                cmocka_unit_test(test_labels),
                cmocka_unit_test(test_long_names),
                cmocka_unit_test(test_pointers),
                cmocka_unit_test(test_odd_names),
                cmocka_unit_test(test_dot_at_the_end_of_the_last_label),
                cmocka_unit_test(test_root),
                cmocka_unit_test(test_class),
                cmocka_unit_test(test_trailing_bytes),
                cmocka_unit_test(test_edns),
                cmocka_unit_test(test_other_records),
                cmocka_unit_test(test_owner_of_opt),
                cmocka_unit_test(test_stream),
                cmocka_unit_test(test_reply),
                cmocka_unit_test(test_negative_reply),
                cmocka_unit_test(test_failed_reply),
                cmocka_unit_test(test_many_answers),
                cmocka_unit_test(test_pointer_reply),
                cmocka_unit_test(test_reverse),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
