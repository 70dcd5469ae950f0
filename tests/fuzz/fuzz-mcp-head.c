/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of the heads that reach the port of holt mcp --http. The first byte says
 * whether a valid Host and token are put in front, so that the code behind these checks is reached.
 */
#include <stdlib.h>
#include <string.h>

#include "mcp/http-head.h"
#include "tests/fuzz/harness.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

/* Reads a copy of the exact size. */
static int read_head(const char *before, const uint8_t *data, size_t size, HttpHead *ret) {
        const size_t length = strlen(before) + size;
        char *head = malloc(length + 1);
        int status;

        REQUIRE(head);
        memcpy(head, before, strlen(before));
        if (size > 0)
                memcpy(head + strlen(before), data, size);
        head[length] = '\0';
        status = http_head_read(head, length, 8000, TOKEN, ret);
        free(head);
        return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const char valid[] = "POST /mcp HTTP/1.1\r\nHost: localhost:8000\r\n"
                                    "Authorization: Bearer " TOKEN "\r\n";
        HttpHead head;
        int status;

        if (size == 0)
                return 0;
        status = read_head(data[0] & 1 ? valid : "", data + 1, size - 1, &head);
        REQUIRE(status == 0 || (status >= 400 && status < 500));
        if (status != 0)
                return 0;
        REQUIRE(head.method < HTTP_METHOD_MAX && head.body <= HTTP_BODY_MAX);
        REQUIRE(strlen(head.session) == 0 || strlen(head.session) == HTTP_SESSION_ID);
        /* Without the token in front, the input must have it. */
        REQUIRE((data[0] & 1) || memmem(data, size, TOKEN, strlen(TOKEN)));
        return 0;
}
