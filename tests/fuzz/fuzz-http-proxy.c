/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of requests to the HTTP proxy. The first byte of the input is the size of the
 * pieces in which the rest arrives. A head that is written for a server must be whole, and name the
 * target. */
#include <stdlib.h>
#include <string.h>

#include "wire/http-proxy.h"
#include "tests/fuzz/harness.h"

/* Each piece gets memory of its own, so that no byte can be read before it has arrived. */
static HttpProxyRequest read_pieces(const uint8_t *data, size_t size, size_t piece) {
        HttpProxyRequest request = { 0 };

        for (size_t length = 0; length < size && request.kind == HTTP_PROXY_MORE;) {
                uint8_t *copy;

                length = size - length < piece ? size : length + piece;
                copy = malloc(length);
                REQUIRE(copy);
                memcpy(copy, data, length);
                http_proxy_read(copy, length, &request);
                free(copy);
        }
        return request;
}

static void check_written(const uint8_t *data, const HttpProxyRequest *request) {
        uint8_t *written = malloc(request->length + HTTP_PROXY_GROWTH);
        size_t length, seen = 0;
        const char *why;
        HttpHead head;

        REQUIRE(written);
        length = http_proxy_write(data, request, written);
        REQUIRE(length > 0 && length <= request->length + HTTP_PROXY_GROWTH);
        REQUIRE(http_head_end(written, length, 0, &seen) == 1 && seen == length);
        REQUIRE(http_head_parse(written, length, &head, &why) == 0);
        REQUIRE(head.form == HTTP_ORIGIN && head.has_host);
        REQUIRE(strcmp(head.host.host, request->target.host) == 0);
        REQUIRE((head.host.port ? head.host.port : 80) == request->target.port);
        free(written);
}

/* A chunk must not have another size once more bytes have come. */
static void check_chunk(const uint8_t *data, size_t size) {
        uint64_t whole = 0, part = 0;
        bool last = false;
        int r = http_chunk_read(data, size, false, &whole, &last);

        REQUIRE(r != 0 || size < HTTP_CHUNK_HEAD);
        for (size_t length = 0; length < size && length < HTTP_CHUNK_HEAD; length++) {
                int early = http_chunk_read(data, length, false, &part, &last);

                REQUIRE(early == 0 || (early == r && part == whole));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        HttpProxyRequest whole, pieces;

        if (size == 0)
                return 0;
        check_chunk(data + 1, size - 1);
        pieces = read_pieces(data + 1, size - 1, 1 + (size_t)data[0] % 64);
        whole = read_pieces(data + 1, size - 1, size);
        REQUIRE(pieces.kind == whole.kind && pieces.length == whole.length);
        REQUIRE(strcmp(pieces.target.host, whole.target.host) == 0);
        REQUIRE(pieces.target.port == whole.target.port);
        REQUIRE((whole.kind == HTTP_PROXY_BAD) == (whole.why != NULL));
        if (whole.kind == HTTP_PROXY_CONNECT || whole.kind == HTTP_PROXY_FORWARD)
                REQUIRE(whole.target.port > 0 && whole.target.host[0] && whole.length < size);
        if (whole.kind == HTTP_PROXY_FORWARD)
                check_written(data + 1, &whole);
        return 0;
}
