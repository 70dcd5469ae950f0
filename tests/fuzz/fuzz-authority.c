/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the readers of hosts. A host that is accepted, and written again in its usual form, must
 * give the same host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "wire/authority.h"
#include "tests/fuzz/harness.h"

typedef int (*Reader)(const void *text, size_t length, Authority *ret);

/* Reads a copy of the exact size, so that no byte behind it can be read. */
static int read_copy(Reader reader, const void *text, size_t length, Authority *ret) {
        uint8_t *copy = malloc(length + 1);
        int r;

        REQUIRE(copy);
        memcpy(copy + 1, text, length);
        r = reader(copy + 1, length, ret);
        free(copy);
        return r;
}

static void check_host(const Authority *authority) {
        char text[NET_ADDRESS_TEXT], name[NET_NAME_MAX + 1];
        NetAddress address;

        if (authority->address.family) {
                REQUIRE(strcmp(authority->host, net_address_text(&authority->address, text)) == 0);
                return;
        }
        REQUIRE(net_name_normal(authority->host, strlen(authority->host), name) == 0);
        REQUIRE(strcmp(authority->host, name) == 0);
        REQUIRE(net_address_parse(name, strlen(name), &address) < 0);
}

static void check_again(Reader reader, const Authority *expected, const char *text) {
        Authority again;

        REQUIRE(read_copy(reader, text, strlen(text), &again) == 0);
        REQUIRE(strcmp(again.host, expected->host) == 0 && again.port == expected->port);
        REQUIRE(net_address_equal(&again.address, &expected->address));
}

static void check_parse(const uint8_t *data, size_t size) {
        char text[NET_NAME_MAX + 16], port[8] = "";
        Authority authority;
        bool brackets;

        if (read_copy(authority_parse, data, size, &authority) < 0)
                return;
        check_host(&authority);
        brackets = authority.address.family == AF_INET6;
        if (authority.port)
                (void)snprintf(port, sizeof(port), ":%u", authority.port);
        (void)snprintf(text, sizeof(text), "%s%s%s%s", brackets ? "[" : "", authority.host,
                       brackets ? "]" : "", port);
        check_again(authority_parse, &authority, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const Reader readers[] = { authority_host, authority_name };
        Authority authority;

        check_parse(data, size);
        for (int i = 0; i < 2; i++) {
                if (read_copy(readers[i], data, size, &authority) < 0)
                        continue;
                REQUIRE(authority.port == 0);
                REQUIRE(authority.address.family != AF_INET6 || readers[i] == authority_name);
                check_host(&authority);
                check_again(readers[i], &authority, authority.host);
        }
        return 0;
}
