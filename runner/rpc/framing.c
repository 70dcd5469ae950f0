/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/framing.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"

enum { ROOM_MIN = 16 << 10 }; /* bytes: what one read gets at least */

void framing_clear(Framing *f) {
        free(f->data);
        *f = (Framing){ .max = f->max };
}

/* Drops the bytes before begin. */
static void move_down(Framing *f) {
        if (f->begin == 0)
                return;
        memmove(f->data, f->data + f->begin, f->end - f->begin);
        f->base += f->begin;
        f->end -= f->begin;
        f->scanned -= f->begin;
        f->begin = 0;
}

int framing_room(Framing *f, char **ret, size_t *ret_size) {
        size_t size = ROOM_MIN;
        char *data;

        assert(f->scanned == f->end);
        move_down(f);
        while (size < f->end + ROOM_MIN)
                size *= 2;
        if (size > f->max + ROOM_MIN)
                size = f->max + ROOM_MIN;
        if (size != f->size) {
                data = realloc(f->data, size);
                if (!data)
                        return -ENOMEM;
                f->data = data;
                f->size = size;
        }
        *ret = f->data + f->end;
        *ret_size = f->size - f->end;
        return 0;
}

void framing_add(Framing *f, size_t length) {
        assert(length <= f->size - f->end);
        f->end += length;
}

/* Drops all bytes of the buffer. They still count in the offsets of the stream. */
static void framing_drop(Framing *f) {
        f->base += f->end;
        f->begin = f->scanned = f->end = f->size = 0;
        free(TAKE_PTR(f->data));
}

/* Keeps the first bytes of a line over the limit, unless an earlier call has kept them. */
static void keep_head(Framing *f, size_t length) {
        if (f->skipping)
                return;
        if (length > FRAMING_HEAD_MAX)
                length = FRAMING_HEAD_MAX;
        memcpy(f->head, f->data + f->begin, length);
        f->head[length] = '\0';
}

/* Returns the next line, of which length bytes are in the buffer. */
static void give_line(Framing *f, size_t length, FramingLine *ret) {
        *ret = (FramingLine){ .offset = f->line };
        if (!f->skipping && length <= f->max) {
                ret->bytes = f->data + f->begin;
                ret->length = length;
        } else {
                keep_head(f, length);
                ret->head = f->head;
        }
        f->skipping = false;
}

bool framing_next(Framing *f, FramingLine *ret) {
        const char *newline = NULL;

        if (f->scanned < f->end)
                newline = memchr(f->data + f->scanned, '\n', f->end - f->scanned);
        if (!newline) {
                f->scanned = f->end;
                if (f->end - f->begin > f->max) {
                        keep_head(f, f->end - f->begin);
                        f->skipping = true;
                }
                if (f->skipping || f->begin == f->end)
                        framing_drop(f);
                return false;
        }
        give_line(f, (size_t)(newline - f->data) - f->begin, ret);
        f->begin = f->scanned = (size_t)(newline + 1 - f->data);
        f->line = f->base + f->begin;
        return true;
}

bool framing_rest(Framing *f, FramingLine *ret) {
        assert(f->scanned == f->end);
        if (f->begin == f->end && !f->skipping)
                return false;
        give_line(f, f->end - f->begin, ret);
        f->begin = f->end;
        f->line = f->base + f->begin;
        return true;
}

uint64_t framing_last_line(const Framing *f) {
        const char *newline;

        assert(f->end > f->scanned);
        newline = memrchr(f->data + f->scanned, '\n', f->end - f->scanned - 1);
        return newline ? f->base + (uint64_t)(newline + 1 - f->data) : f->line;
}
