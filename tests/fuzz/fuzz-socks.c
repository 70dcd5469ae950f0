/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of SOCKS5: a greeting, and a request after it. No prefix of either may give
 * another result, except that more bytes are needed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "wire/socks.h"
#include "tests/fuzz/harness.h"

static void check_request(const uint8_t *data, size_t size, int r, const Authority *authority) {
        char text[NET_ADDRESS_TEXT];

        REQUIRE(r <= (int)size && r >= -SOCKS_NO_ADDRESS_TYPE);
        if (r <= 0)
                return;
        REQUIRE(r >= 8 && r <= 262 && authority->port > 0 && authority->host[0]);
        if (authority->address.family)
                REQUIRE(strcmp(authority->host, net_address_text(&authority->address, text)) == 0);
        else
                REQUIRE(strlen(authority->host) <= data[4]);
}

/* Reads each prefix in memory of its own, so that no byte can be read before it has arrived. */
static int read_prefixes(const uint8_t *data, size_t size, Authority *ret) {
        for (size_t length = 0; length <= size; length++) {
                uint8_t *copy = malloc(length + 1);
                int r;

                REQUIRE(copy);
                memcpy(copy + 1, data, length);
                r = socks_request(copy + 1, length, ret);
                free(copy);
                if (r != 0)
                        return r;
        }
        return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        uint8_t reply[SOCKS_GREETING_REPLY];
        Authority authority = { 0 }, prefix = { 0 };
        int r = socks_greeting(data, size, reply);

        REQUIRE(r == -EBADMSG || r == -EACCES || r == 0 || (r >= 3 && (size_t)r <= size));
        if (r > 0) {
                data += r;
                size -= (size_t)r;
        }
        r = socks_request(data, size, &authority);
        check_request(data, size, r, &authority);
        REQUIRE(read_prefixes(data, size < 300 ? size : 300, &prefix) == r);
        REQUIRE(r <= 0 || memcmp(&authority, &prefix, sizeof(prefix)) == 0);
        return 0;
}
