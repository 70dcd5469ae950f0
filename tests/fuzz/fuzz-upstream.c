/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of replies of the proxy outside. The first byte of the input is the size of the
 * pieces in which the rest arrives. Pieces must give the same result as the whole, and the bytes
 * after the head are the target's, so they must not change it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/upstream-wire.h"
#include "tests/fuzz/harness.h"

typedef struct Result {
        int r;
        size_t seen;
        unsigned status;
} Result;

/* Each piece gets memory of its own, so that no byte can be read before it has arrived. */
static Result read_pieces(const uint8_t *data, size_t size, size_t piece) {
        Result result = { 0 };

        for (size_t length = 0; length < size && result.r == 0;) {
                uint8_t *copy;

                length = size - length < piece ? size : length + piece;
                copy = malloc(length);
                REQUIRE(copy);
                memcpy(copy, data, length);
                result.r = upstream_read(copy, length, &result.seen, &result.status);
                free(copy);
        }
        return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Result whole, pieces, head;

        if (size < 2 || size > UPSTREAM_REPLY_MAX)
                return 0;
        pieces = read_pieces(data + 1, size - 1, 1 + (size_t)data[0] % 64);
        whole = read_pieces(data + 1, size - 1, size);
        REQUIRE(pieces.r == whole.r || (pieces.r < 0 && whole.r < 0));
        if (whole.r <= 0)
                return 0;
        REQUIRE(whole.seen == pieces.seen && whole.status == pieces.status);
        REQUIRE(whole.seen >= 13 && whole.seen < size);
        REQUIRE(whole.status <= 999);
        REQUIRE(upstream_errno(whole.status) > 0);
        head = read_pieces(data + 1, whole.seen, whole.seen);
        REQUIRE(head.r > 0 && head.status == whole.status && head.seen == whole.seen);
        return 0;
}
