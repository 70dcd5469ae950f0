/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the readers of links, of ranges, and of bodies in chunks. The first byte says how the
 * input is used.
 *
 * An input as it is has no valid signature, so it must be refused. To reach what lies behind the
 * signature, a link is also made from the input. Its text must give the same link, and no link with
 * any one byte changed. */
#include <stdlib.h>
#include <string.h>

#include "links/chunks.h"
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

/* Decodes in pieces of up to `step` bytes. Returns the length of the body, or -1. */
static ssize_t decode(const Input *in, size_t step, char *ret) {
        const size_t size = (size_t)(in->end - in->at);
        ChunkReader reader = { 0 };
        ssize_t length = 0;

        for (size_t at = 0; at < size; at += step) {
                const size_t n = size - at < step ? size - at : step;
                char *piece = malloc(n);
                ssize_t got;

                REQUIRE(piece);
                memcpy(piece, in->at + at, n);
                got = chunks_decode(&reader, piece, n);
                REQUIRE(got <= (ssize_t)n);
                if (got > 0)
                        memcpy(ret + length, piece, (size_t)got);
                free(piece);
                if (got < 0)
                        return -1;
                length += got;
        }
        return reader.state == CHUNK_END ? length : -2 - length;
}

/* A body is the same wherever it is cut. */
static void check_chunks(Input *in) {
        const size_t step = 1 + take_byte(in) % 24, size = (size_t)(in->end - in->at);
        char *whole = malloc(size + 1), *parts = malloc(size + 1);
        ssize_t length;

        REQUIRE(whole && parts);
        length = decode(in, SIZE_MAX / 2, whole);
        REQUIRE(decode(in, step, parts) == length);
        REQUIRE(length < 0 || memcmp(whole, parts, (size_t)length) == 0);
        free(whole);
        free(parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Input in = { data, data + size };

        switch (take_byte(&in) % 4) {
        case 0:
                check_forged(in.at, (size_t)(in.end - in.at));
                break;
        case 1:
                check_made(&in);
                break;
        case 2:
                check_range(&in);
                break;
        default:
                check_chunks(&in);
        }
        return 0;
}
