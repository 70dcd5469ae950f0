/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a stream into lines, each of which is one message. The caller does the reading:
 *
 *         r = framing_room(&f, &room, &size);
 *         n = read(fd, room, size);
 *         framing_add(&f, n);
 *         while (framing_next(&f, &line))
 *                 ...
 *
 * A line longer than the limit is skipped to its end. It is returned once, without its bytes.
 * The buffer grows with the line, to little more than the limit. It is freed as soon as it holds no
 * part of a line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAMING_HEAD_MAX = 128 }; /* bytes that are kept of a line over the limit */

/* Set max, and zero the rest. */
typedef struct Framing {
        size_t max; /* bytes of a line, without its newline */

        char *data; /* owned */
        size_t size;
        size_t begin;                    /* index of the next line's first byte */
        size_t scanned;                  /* index up to which no newline follows begin */
        size_t end;                      /* number of filled bytes */
        uint64_t base;                   /* offset of data[0] in the stream */
        uint64_t line;                   /* offset of the next line in the stream */
        bool skipping;                   /* that line is over the limit, and is being dropped */
        char head[FRAMING_HEAD_MAX + 1]; /* its first bytes, a string */
} Framing;

typedef struct FramingLine {
        const char *bytes; /* without the newline, valid until the next call; NULL: too long */
        size_t length;
        uint64_t offset;  /* position of its first byte in the stream; identifies the line */
        const char *head; /* first bytes of a line over the limit, a string; otherwise NULL */
} FramingLine;

void framing_clear(Framing *f);

/* Returns the buffer for the next bytes of the stream. *ret_size is never 0. Call it only after
 * framing_next() has returned false. Returns 0 or -ENOMEM. */
int framing_room(Framing *f, char **ret, size_t *ret_size);
/* Adds the length bytes that the caller has put into that buffer. */
void framing_add(Framing *f, size_t length);
/* Returns the next whole line, or false if there is none. */
bool framing_next(Framing *f, FramingLine *ret);
/* After the end of the stream: returns the bytes behind the last newline, or false if there are
 * none. */
bool framing_rest(Framing *f, FramingLine *ret);

/* The offset of the line that has the last added byte. A newline belongs to the line that it ends.
 * Call it after framing_add() of at least one byte, and before framing_next(). */
uint64_t framing_last_line(const Framing *f);
