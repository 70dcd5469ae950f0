/* SPDX-License-Identifier: Apache-2.0 */
#include "links/chunks.h"

#include <errno.h>
#include <string.h>

enum { DIGITS_MAX = 15 }; /* So the size fits into 60 bits. */

static int chunk_take_digit(ChunkReader *reader, char c) {
        static const char digits[] = "0123456789abcdef";
        const char *found = c ? strchr(digits, c >= 'A' && c <= 'F' ? c | 0x20 : c) : NULL;

        if (found && reader->digits < DIGITS_MAX) {
                reader->left = reader->left << 4 | (uint64_t)(found - digits);
                reader->digits++;
                return 0;
        }
        if (found || reader->digits == 0 || !(c == '\r' || c == ';'))
                return -EBADMSG;
        reader->state = c == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
        return 0;
}

/* Skips a byte of an extension or a trailer field. */
static int chunk_skip(ChunkReader *reader, char c, ChunkState next) {
        if (c == '\r')
                reader->state = next;
        else if (((unsigned char)c < 0x20 && c != '\t') || c == 0x7f)
                return -EBADMSG;
        return ++reader->extra > CHUNKS_EXTRA_MAX ? -EBADMSG : 0;
}

static int chunk_expect(ChunkReader *reader, char c, char expected, ChunkState next) {
        reader->state = next;
        return c == expected ? 0 : -EBADMSG;
}

static int chunk_end_size(ChunkReader *reader, char c) {
        reader->digits = 0;
        return chunk_expect(reader, c, '\n', reader->left ? CHUNK_DATA : CHUNK_LINE);
}

/* Takes a byte that is not of the body. */
static int chunk_take(ChunkReader *reader, char c) {
        switch (reader->state) {
        case CHUNK_SIZE:
                return chunk_take_digit(reader, c);
        case CHUNK_EXTENSION:
                return chunk_skip(reader, c, CHUNK_SIZE_LF);
        case CHUNK_SIZE_LF:
                return chunk_end_size(reader, c);
        case CHUNK_DATA_CR:
                return chunk_expect(reader, c, '\r', CHUNK_DATA_LF);
        case CHUNK_DATA_LF:
                return chunk_expect(reader, c, '\n', CHUNK_SIZE);
        case CHUNK_LINE:
                reader->state = CHUNK_TRAILER;
                return chunk_skip(reader, c, CHUNK_END_LF);
        case CHUNK_TRAILER:
                return chunk_skip(reader, c, CHUNK_TRAILER_LF);
        case CHUNK_TRAILER_LF:
                return chunk_expect(reader, c, '\n', CHUNK_LINE);
        case CHUNK_END_LF:
                return chunk_expect(reader, c, '\n', CHUNK_END);
        case CHUNK_DATA:
        case CHUNK_END:
                break;
        }
        return -EBADMSG;
}

ssize_t chunks_decode(ChunkReader *reader, char *data, size_t length) {
        size_t at = 0, count = 0;

        while (at < length && reader->state != CHUNK_END) {
                size_t n = 1;

                if (reader->state != CHUNK_DATA) {
                        if (chunk_take(reader, data[at]) < 0)
                                return -EBADMSG;
                } else {
                        n = reader->left < length - at ? (size_t)reader->left : length - at;
                        memmove(data + count, data + at, n);
                        count += n;
                        reader->left -= n;
                        if (reader->left == 0)
                                reader->state = CHUNK_DATA_CR;
                }
                at += n;
        }
        return (ssize_t)count;
}
