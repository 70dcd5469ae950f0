/* SPDX-License-Identifier: Apache-2.0 */
/* Moves bytes from one socket to another: a few by a copy, many inside the kernel (splice(2)). A
 * pipe is needed only while bytes wait in it; it then goes back to a pool.
 *
 * The caller reports the events of both sockets, which it gets once for each change (EPOLLET). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Pipes Pipes;

/* Returns NULL without memory. */
Pipes *pipes_new(void);

typedef struct Pump {
        int from, to;  /* Borrowed, not blocking. */
        int pipe[2];   /* FD_NONE while it is empty. */
        unsigned kind; /* The kind of the pipe. */
        size_t held;   /* Bytes in the pipe. */
        uint64_t moved;
        /* Bytes that the target gets before those of the pipe and of the source; owned, or NULL. */
        uint8_t *ahead;
        size_t ahead_length, ahead_sent;
        bool readable, writable; /* From the last event; false after EAGAIN. */
        bool urgent;             /* splice(2) may stop before an urgent byte of the source. */
        bool ending;             /* The source has ended, or failed, after the bytes that remain. */
        bool bulk;               /* Many bytes follow each other. */
        bool limited;            /* Only `left` more bytes of the source move. */
        uint64_t left;
        bool ended; /* All bytes of the source have been read. */
        bool shut;  /* The target has been told of that end. */
} Pump;

typedef enum PumpState {
        PUMP_WAITS, /* For an event. */
        PUMP_BUSY,  /* It could go on: call it again after others had their turn. */
        PUMP_DONE,  /* All bytes have moved, and the target knows the end. */
} PumpState;

/* Moves what can be moved now. With `last`, the caller closes the target once all bytes have moved.
 * Returns a PumpState, or a negative errno of either socket; -EMFILE and -ENFILE if no pipe can be
 * made. */
int pump_run(Pump *pump, Pipes *pipes, bool last);
/* Gives the pipe back or closes it. */
void pump_clear(Pump *pump, Pipes *pipes);
