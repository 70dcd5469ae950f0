/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of DNS queries, and writes replies to what it accepts. Names must be in their
 * usual form, and replies must keep their limits and repeat the question. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "wire/dns-wire.h"
#include "tests/fuzz/harness.h"

static void check_name(const char *name) {
        char normal[NET_NAME_MAX + 1];

        REQUIRE(net_name_normal(name, strlen(name), normal) == 0 && strcmp(name, normal) == 0);
}

static void check_reply(const DnsQuery *query, int code, size_t count) {
        NetAddress answers[100];
        uint8_t reply[DNS_REPLY_MAX];
        const char *target = query->name[0] ? query->name : NULL;
        size_t length;

        for (size_t i = 0; i < count; i++)
                answers[i] = net_address_of_number(i % 2 ? AF_INET : AF_INET6, (unsigned)i);
        length = dns_reply_write(query, code, answers, count, target, 60, reply);
        REQUIRE(length >= 12 && length <= query->reply_max);
        REQUIRE((reply[0] << 8 | reply[1]) == query->id && reply[2] & 0x80);
        REQUIRE((reply[3] & 15) == (code & 15));
        REQUIRE(!query->question ||
                memcmp(reply + 12, query->question, query->question_length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        DnsQuery query;
        NetAddress address;
        int r = dns_query_parse(data, size, &query), stream = dns_stream_next(data, size);

        REQUIRE(stream == -EBADMSG || (stream >= 0 && (size_t)stream + 2 <= size + 2));
        REQUIRE(stream <= 0 || (size_t)stream + 2 <= size);
        if (r < 0)
                return 0;
        REQUIRE(query.reply_max >= 512 && query.reply_max <= DNS_REPLY_MAX);
        REQUIRE(!query.question ||
                (query.question == data + 12 && query.question_length <= size - 12));
        if (r == 0) {
                check_name(query.name);
                (void)dns_reverse_parse(query.name, &address);
                check_reply(&query, DNS_NOERROR, 1);
                check_reply(&query, DNS_NOERROR, 100);
                check_reply(&query, DNS_NXDOMAIN, 0);
        }
        check_reply(&query, r, 0);
        return 0;
}
