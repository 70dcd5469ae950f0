/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/buffer.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

int pipe_buffer_add(Buffer *buffer, const char *data, size_t length) {
        const size_t needed = buffer->length + length;
        char *grown;

        if (length == 0)
                return 0;
        if (buffer->start > 0 && buffer->start + needed > buffer->size) {
                memmove(buffer->data, buffer->data + buffer->start, buffer->length);
                buffer->start = 0;
        }
        if (needed > buffer->size) {
                size_t size = buffer->size ? buffer->size : BUFFER_FIRST;

                while (size < needed)
                        size *= 2;
                grown = realloc(buffer->data, size);
                if (!grown)
                        return -ENOMEM;
                buffer->data = grown;
                buffer->size = size;
        }
        memcpy(buffer->data + buffer->start + buffer->length, data, length);
        buffer->length += length;
        return 0;
}

size_t buffer_take(Buffer *buffer, char *ret, size_t most) {
        const size_t n = buffer->length < most ? buffer->length : most;

        if (n > 0)
                memcpy(ret, buffer->data + buffer->start, n);
        buffer_drop(buffer, n);
        return n;
}

void buffer_drop(Buffer *buffer, size_t n) {
        buffer->length -= n;
        buffer->start = buffer->length ? buffer->start + n : 0;
}

bool buffer_is_full(const Buffer *buffer) {
        return buffer->length >= BUFFER_ROOM;
}

void buffer_clear(Buffer *buffer) {
        free(buffer->data);
        *buffer = (Buffer){ 0 };
}
