/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of the first packet of a connection. Bytes after the headers change nothing,
 * and a packet that is cut is refused or gives the same result. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "wire/syn.h"
#include "tests/fuzz/harness.h"

enum { HEADERS_MAX = 60 + 14 };

/* Reads a copy of the exact size, so that no byte behind it can be read. */
static int read_copy(const uint8_t *data, size_t size, Syn *ret, uint32_t *ret_sequence) {
        uint8_t *copy = malloc(size + 1);
        int r;

        REQUIRE(copy);
        memcpy(copy + 1, data, size);
        r = syn_read(copy + 1, size, ret, ret_sequence);
        free(copy);
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        uint32_t sequence = 0, other_sequence = 0;
        Syn syn, other;
        int r = read_copy(data, size, &syn, &sequence);

        REQUIRE(r == 0 || r == -EBADMSG);
        if (r == 0)
                REQUIRE(syn.to.family == (data[0] >> 4 == 4 ? AF_INET : AF_INET6) &&
                        syn.from.family == syn.to.family);
        for (size_t length = 0; length < size && length < HEADERS_MAX; length++)
                if (read_copy(data, length, &other, &other_sequence) == 0)
                        REQUIRE(r == 0 && memcmp(&syn, &other, sizeof(syn)) == 0 &&
                                sequence == other_sequence);
        return 0;
}
