/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in, lines out: what of a stream is one message. It reads nothing itself.
 *
 *         r = framing_room(&f, &room, &size);
 *         n = read(fd, room, size);
 *         framing_add(&f, n);
 *         while (framing_next(&f, &line))
 *                 ...
 *
 * A line that is longer than the limit is skipped to its end and comes out once, without its bytes.
 * The buffer grows with the line that is being read, to little more than the limit, and is given
 * back when there is no part of a line in it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAMING_HEAD_MAX = 128 }; /* bytes of a line too long that are kept */

/* Zeroed but for max is ready. */
typedef struct Framing {
        size_t max; /* bytes of a line, without its newline */

        char *data; /* owned */
        size_t size;
        size_t begin, scanned,
                end;   /* the next line's first byte; no newline before; what is filled */
        uint64_t base; /* offset in the stream of data[0] */
        uint64_t line; /* ... of the next line's first byte */
        bool skipping; /* the bytes of that line are being dropped */
        char head[FRAMING_HEAD_MAX + 1]; /* ... but for its first ones */
} Framing;

typedef struct FramingLine {
        const char *bytes; /* without the newline, until the next call; NULL of one too long */
        size_t length;
        uint64_t offset;  /* in the stream, of its first byte: its name */
        const char *head; /* of one too long: how it begins, to tell what it is about; a string */
} FramingLine;

void framing_clear(Framing *f);

/* Where the next bytes of the stream go; not while framing_next() has lines. *ret_size is never 0.
 * 0 or -ENOMEM. */
int framing_room(Framing *f, char **ret, size_t *ret_size);
/* length bytes have been put there. */
void framing_add(Framing *f, size_t length);
/* The next whole line; false when there is none. */
bool framing_next(Framing *f, FramingLine *ret);
/* After the end of the stream: what came behind the last newline; false when nothing did. */
bool framing_rest(Framing *f, FramingLine *ret);

/* The offset of the line in which the last byte that was added lies; a newline belongs to the line
 * that it ends. After framing_add() of at least a byte, before framing_next(). */
uint64_t framing_last_line(const Framing *f);
