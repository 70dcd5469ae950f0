/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on their way between the sandbox and the caller, one chunk at a time: what the terminal
 * (terminal.h) and the output (output.h) have in common. They are an attacker's, and nobody looks
 * at them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/util.h"

/* How much of what the command prints goes to the caller. */
typedef struct Budget {
        uint64_t limit;
        uint64_t taken;   /* bytes that were read, up to the limit */
        uint64_t dropped; /* ... and past it */
        uint64_t lost;    /* of those taken, what nobody was there to take */
        bool passed;      /* there was more than the limit */
} Budget;

/* Whether all that is read from now on is dropped. */
bool budget_spent(const Budget *budget);
/* Counts size bytes that were read; returns how many of them, from the first on, are to go on.
 * Without a budget (NULL) all do. */
size_t budget_take(Budget *budget, size_t size);
/* Counts bytes that were taken and can't be delivered. budget may be NULL. */
void budget_lose(Budget *budget, size_t size);

/* Bytes in one direction. */
typedef struct Relay {
        char data[16 * 1024]; /* no less than PIPE_BUF, or packets of a pipe would be cut */
        size_t start, end;
        bool held;   /* a carriage return comes first, which waits for what is behind it */
        bool closed; /* the source has ended, or the sink is gone */
} Relay;

bool relay_empty(const Relay *relay);
/* Reads a chunk from fd. relay is empty, unless the budget is spent: then all that is read is
 * dropped, and what relay has is left alone. budget may be NULL. Returns how many bytes were read;
 * at the source's end, or its failure, 0 with relay->closed set. */
size_t relay_fill(Relay *relay, int fd, Budget *budget);
/* After a write of what relay has: n is what it returned, and errno tells of a failure. Returns
 * false where the sink has failed for good. */
bool relay_advance(Relay *relay, ssize_t n);
/* Throws away what relay has. */
void relay_discard(Relay *relay, Budget *budget);

/* write(2) to an fd that blocks, for 20 ms at most: the reader may have stopped, even after there
 * was room. -1 and EINTR where nothing was written. Needs no resource that can be used up. */
ssize_t patience_write(int fd, const char *data, size_t size);
