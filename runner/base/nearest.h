/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean ...?": the candidate that is closest to a mistyped word. */
#pragma once

typedef struct Nearest {
        const char *word;  /* borrowed; what was typed */
        const char *best;  /* borrowed; NULL while nothing is close enough */
        unsigned distance; /* of best */
} Nearest;

/* Offers a candidate, which has to outlive the struct. Close enough is one wrong, missing, extra or
 * swapped character for every three of the word, one at least, or its end missing. */
void nearest_try(Nearest *nearest, const char *candidate);
