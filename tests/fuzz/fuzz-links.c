/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the readers of links and of ranges. The first byte says how the input is used.
 *
 * An input as it is has no valid signature, so it must be refused. To reach what lies behind the
 * signature, a link is also made from the input. Its text must give the same link, and no link with
 * any one byte changed. */
#include <stdlib.h>
#include <string.h>

#include "links/link.h"
#include "links/range.h"
#include "tests/fuzz/harness.h"

static const LinkKey the_key = { .bytes = { 1, 2, 3 }, .session = "work" };

/* Reads a copy of the exact size, so that no byte behind it can be read. */
static int read_link(const void *text, size_t length, Link *ret) {
        char *copy = malloc(length + 1);
        int r;

        REQUIRE(copy);
        memcpy(copy + 1, text, length);
        r = link_read(&the_key, copy + 1, length, ret);
        free(copy);
        return r;
}

static void check_forged(const uint8_t *data, size_t size) {
        Link link;

        REQUIRE(read_link(data, size, &link) < 0);
}

static void check_made(Input *in) {
        char target[LINK_TARGET_MAX + 1];
        Link link = { .upload = take_byte(in) & 1 }, back;
        size_t length, at;

        link.id = take_u32(in) | 1;
        link.expires_ms = (uint64_t)take_u32(in) << 16 | 1;
        at = take_u32(in);
        length = (size_t)(in->end - in->at);
        if (length > LINK_PATH_MAX)
                length = LINK_PATH_MAX;
        memcpy(link.path, in->at, length);
        if (!link_path_fits(link.path))
                return;
        link_write(&the_key, &link, target);
        length = strlen(target);
        REQUIRE(read_link(target, length, &back) == 0);
        REQUIRE(back.upload == link.upload && back.id == link.id);
        REQUIRE(back.expires_ms == link.expires_ms && strcmp(back.path, link.path) == 0);
        target[at % length] ^= (char)(1 << at % 7);
        REQUIRE(read_link(target, length, &back) < 0);
}

static void check_range(Input *in) {
        const uint64_t size = (uint64_t)take_u32(in) << 32 | take_u32(in);
        const size_t length = (size_t)(in->end - in->at);
        uint64_t start = 0, count = 0;
        char *copy = malloc(length + 1);
        int r;

        REQUIRE(copy);
        memcpy(copy + 1, in->at, length);
        r = range_read(copy + 1, length, size, &start, &count);
        free(copy);
        REQUIRE(r != 1 || (count > 0 && start < size && count <= size - start));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Input in = { data, data + size };

        switch (take_byte(&in) % 3) {
        case 0:
                check_forged(in.at, (size_t)(in.end - in.at));
                break;
        case 1:
                check_made(&in);
                break;
        default:
                check_range(&in);
        }
        return 0;
}
