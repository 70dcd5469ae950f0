/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on their way between the sandbox and the caller, one chunk at a time. The terminal
 * (terminal.h) and the output (output.h) both use relays. The bytes come from an attacker, so no
 * code here interprets them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/util.h"
#include "streams/tail.h"

/* The number of output bytes that may go to the caller. */
typedef struct Budget {
        uint64_t limit;
        uint64_t taken;   /* Bytes that were read, up to the limit. */
        uint64_t dropped; /* Bytes that were read past the limit. */
        uint64_t lost;    /* Bytes among `taken` that could not be delivered. */
        bool passed;      /* The command wrote more than the limit. */
} Budget;

/* Whether every byte that is read from now on is dropped. */
bool budget_spent(const Budget *budget);
/* Counts size bytes that were read. Returns how many of them, from the first on, may go to the
 * caller. Without a budget (NULL) all may. */
size_t budget_take(Budget *budget, size_t size);

/* Bytes in one direction. */
typedef struct Relay {
        size_t start, end;
        bool held;   /* A carriage return was read and waits for the next byte. */
        bool closed; /* The source has ended, or the sink has gone. */
        Tail *tail;  /* Gets all bytes that are read, too; borrowed, or NULL. */
        /* As many as a pipe can hold, so that a read cuts no write of the command in two. */
        char data[64 * 1024];
} Relay;

bool relay_empty(const Relay *relay);
/* Reads a chunk from fd. relay must be empty, unless the budget is spent: then all bytes read are
 * dropped, and relay stays unchanged. budget may be NULL. Returns the number of bytes read. At the
 * end of the source, or if it fails, returns 0 and sets relay->closed. */
size_t relay_fill(Relay *relay, int fd, Budget *budget);
/* Call it after a write of the relay's bytes. n is the result of that write, and errno its error.
 * Returns false if the sink has failed for good. */
bool relay_advance(Relay *relay, ssize_t n);
/* Drops the relay's bytes and counts them as lost. */
void relay_discard(Relay *relay, Budget *budget);

/* Returns how many of the bytes to write to a pipe at once: whole lines, if possible, and at most
 * PIPE_BUF. The kernel does not mix such a write with those of other processes (pipe(7)). */
size_t pipe_part(const char *data, size_t size);
/* write(2) to a blocking fd, for 20 ms at most: the reader may stop even after poll(2) has reported
 * room. Returns -1 with EINTR if nothing was written. Needs no resource that another process could
 * use up. */
ssize_t patience_write(int fd, const char *data, size_t size);
