/* SPDX-License-Identifier: Apache-2.0 */
/* Moves bytes from one socket to another inside the kernel (splice(2)). A pipe is needed only while
 * bytes wait in it; it then goes back to a pool. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Pipes Pipes;

/* Returns NULL without memory. */
Pipes *pipes_new(void);

typedef struct Pump {
        int from, to; /* Borrowed, not blocking. */
        int pipe[2];  /* FD_NONE while it is empty. */
        size_t held;  /* Bytes in the pipe. */
        uint64_t moved;
        uint8_t *ahead; /* Bytes that the target gets before those of the source; owned, or NULL. */
        size_t ahead_length, ahead_sent;
        bool readable, writable; /* As the last event said; false after EAGAIN. */
        bool urgent;             /* splice(2) may stop before an urgent byte of the source. */
        bool limited;            /* Only `left` more bytes of the source move. */
        uint64_t left;
        bool ended; /* The source has ended. */
        bool shut;  /* The target has been told of that end. */
} Pump;

typedef enum PumpState {
        PUMP_WAITS, /* For an event. */
        PUMP_BUSY,  /* It could go on: call it again after others had their turn. */
        PUMP_DONE,  /* All bytes have moved, and the target knows the end. */
} PumpState;

/* Moves what can be moved now. Returns a PumpState, or a negative errno of either socket; -EMFILE
 * and -ENFILE if no pipe can be made. */
int pump_run(Pump *pump, Pipes *pipes);
/* Gives the pipe back or closes it. */
void pump_clear(Pump *pump, Pipes *pipes);
