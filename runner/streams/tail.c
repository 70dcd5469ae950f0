/* SPDX-License-Identifier: Apache-2.0 */
#include "streams/tail.h"

#include <string.h>

void tail_add(Tail *tail, const char *data, size_t size) {
        if (size > TAIL_MAX) {
                data += size - TAIL_MAX;
                size = TAIL_MAX;
        }
        /* Moves bytes only once for every TAIL_MAX that come. */
        if (tail->length + size > sizeof(tail->data)) {
                memmove(tail->data, tail->data + tail->length - TAIL_MAX, TAIL_MAX);
                tail->length = TAIL_MAX;
        }
        memcpy(tail->data + tail->length, data, size);
        tail->length += size;
}
