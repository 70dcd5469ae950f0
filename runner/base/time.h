/* SPDX-License-Identifier: Apache-2.0 */
/* The current time as numbers. */
#pragma once

#include <stdint.h>
#include <time.h>

/* usec of CLOCK_MONOTONIC, for durations and deadlines. */
static inline uint64_t time_now_usec(void) {
        struct timespec t;

        (void)clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Milliseconds since the epoch. */
static inline uint64_t time_epoch_ms(void) {
        struct timespec t;

        (void)clock_gettime(CLOCK_REALTIME, &t);
        return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}
