/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the last bytes of an output, for sandbox/complaints.h. */
#pragma once

#include <stddef.h>

enum { TAIL_MAX = 8 * 1024 };

/* At the start, length is zero. */
typedef struct Tail {
        char data[2 * TAIL_MAX]; /* The last of these bytes, up to TAIL_MAX, are the tail. */
        size_t length;
} Tail;

void tail_add(Tail *tail, const char *data, size_t size);
