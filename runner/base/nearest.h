/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean ...?": the candidate that is closest to a mistyped word. */
#pragma once

typedef struct Nearest {
        const char *word;  /* borrowed; the mistyped word */
        const char *best;  /* borrowed; NULL while nothing is close enough */
        unsigned distance; /* distance of `best` */
} Nearest;

/* Offers a candidate, which must outlive the struct. A candidate is close enough if the word is its
 * beginning. Otherwise one character in every three of the word may be wrong, missing, extra or
 * swapped; in a short word, one may. */
void nearest_try(Nearest *nearest, const char *candidate);
