/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on their way from one side to the other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
        BUFFER_FIRST = 4 << 10,  /* Bytes of a new buffer. Most bodies fit. */
        BUFFER_ROOM = 256 << 10, /* Bytes from which on the sender has to wait, */
        BUFFER_LOW = 32 << 10,   /* and at which it goes on. */
};

typedef struct Buffer {
        char *data;
        size_t start, length, size;
} Buffer;

/* Returns 0 or -ENOMEM. */
int pipe_buffer_add(Buffer *buffer, const char *data, size_t length);
/* Moves up to `most` bytes into ret. Returns their number. */
size_t buffer_take(Buffer *buffer, char *ret, size_t most);
/* Forgets the first n bytes, of which there are at least as many. */
void buffer_drop(Buffer *buffer, size_t n);
bool buffer_is_full(const Buffer *buffer);
void buffer_clear(Buffer *buffer);
