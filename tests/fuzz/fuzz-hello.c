/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of a client's first bytes. The first byte of the input is the size of the
 * pieces in which the rest arrives. Pieces must not change the result. */
#include <stdlib.h>
#include <string.h>

#include "wire/authority.h"
#include "wire/hello.h"
#include "tests/fuzz/harness.h"

static void check(const Hello *hello) {
        Authority authority;

        REQUIRE((hello->kind == HELLO_BAD) == (hello->why != NULL));
        if (hello->kind != HELLO_TLS && hello->kind != HELLO_HTTP)
                REQUIRE(!hello->name[0]);
        if (hello->name[0] && !strchr(hello->name, ':')) {
                REQUIRE(authority_host(hello->name, strlen(hello->name), &authority) == 0);
                REQUIRE(strcmp(authority.host, hello->name) == 0);
        }
}

/* Each piece gets memory of its own, so that no byte can be read before it has arrived. */
static Hello read_pieces(const uint8_t *data, size_t size, size_t piece) {
        Hello hello = { 0 };

        for (size_t length = 0; length < size && hello.kind == HELLO_MORE;) {
                uint8_t *copy;

                length = size - length < piece ? size : length + piece;
                copy = malloc(length);
                REQUIRE(copy);
                memcpy(copy, data, length);
                hello_read(copy, length, &hello);
                check(&hello);
                free(copy);
        }
        return hello;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Hello whole, pieces;

        if (size == 0)
                return 0;
        pieces = read_pieces(data + 1, size - 1, 1 + (size_t)data[0] % 64);
        whole = read_pieces(data + 1, size - 1, size);
        REQUIRE(pieces.kind == whole.kind && strcmp(pieces.name, whole.name) == 0);
        REQUIRE(pieces.hidden == whole.hidden);
        hello_finish(data + 1, size - 1, data[0] & 64, &whole);
        check(&whole);
        REQUIRE(whole.kind != HELLO_MORE || !(data[0] & 64));
        return 0;
}
