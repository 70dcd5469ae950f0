/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include <string.h>

/* Longer words are not compared, because nobody types them. */
enum { WORD_MAX = 40, PREFIX_MIN = 3 };

static unsigned nearest_min3(unsigned a, unsigned b, unsigned c) {
        unsigned least = a < b ? a : b;

        return least < c ? least : c;
}

/* The edit distance that counts swapped neighbours as one edit (optimal string alignment). */
static unsigned edit_distance(const char *a, size_t a_len, const char *b, size_t b_len) {
        unsigned rows[3][WORD_MAX + 1];
        unsigned *before = rows[0], *last = rows[1], *row = rows[2], *spare;

        for (size_t j = 0; j <= b_len; j++)
                last[j] = (unsigned)j;
        for (size_t i = 1; i <= a_len; i++) {
                row[0] = (unsigned)i;
                for (size_t j = 1; j <= b_len; j++) {
                        row[j] = nearest_min3(last[j] + 1, row[j - 1] + 1,
                                              last[j - 1] + (a[i - 1] != b[j - 1]));
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                            before[j - 2] + 1 < row[j])
                                row[j] = before[j - 2] + 1;
                }
                spare = before;
                before = last;
                last = row;
                row = spare;
        }
        return last[b_len];
}

void nearest_try(Nearest *nearest, const char *candidate) {
        size_t word = strlen(nearest->word), other = strlen(candidate);
        unsigned distance;

        if (word > WORD_MAX || other > WORD_MAX)
                return;
        /* The beginning of a name counts as near, regardless of how much is missing. */
        if (word >= PREFIX_MIN && strncmp(nearest->word, candidate, word) == 0)
                distance = other > word;
        else
                distance = edit_distance(nearest->word, word, candidate, other);
        if (distance > (word < 6 ? 1 : word / 3))
                return;
        if (nearest->best && distance >= nearest->distance)
                return;
        nearest->best = candidate;
        nearest->distance = distance;
}
