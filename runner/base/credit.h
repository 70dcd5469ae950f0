/* SPDX-License-Identifier: Apache-2.0 */
/* A rate limit that allows a few events at once, and then one in each period. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Zeros are a full credit. */
typedef struct Credit {
        uint64_t full_at; /* usec: nothing is used up from this time on. */
} Credit;

/* Takes one. Returns false, and takes nothing, if most have been taken and not come back: one comes
 * back in each period. now and period are in usec. now may be small: CLOCK_MONOTONIC counts from
 * the host's start. */
static inline bool credit_take(Credit *credit, unsigned most, uint64_t period, uint64_t now) {
        const uint64_t full_at = credit->full_at > now ? credit->full_at : now;

        if (full_at - now > (most - 1) * period)
                return false;
        credit->full_at = full_at + period;
        return true;
}
