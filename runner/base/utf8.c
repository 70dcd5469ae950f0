/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <string.h>

#include "base/util.h"

/* The rows of table 3-7. Each gives the range of the second byte; later bytes are 80..BF. */
static const struct {
        unsigned char first_min, first_max, second_min, second_max, length;
} sequences[] = {
        { 0x00, 0x7f, 0x00, 0x00, 1 }, { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
        { 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
        { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
};

size_t utf8_sequence(const char *s, size_t left) {
        const unsigned char *byte = (const unsigned char *)s;
        size_t row = 0;

        if (left == 0)
                return 0;
        while (row < ELEMENTSOF(sequences) &&
               (byte[0] < sequences[row].first_min || byte[0] > sequences[row].first_max))
                row++;
        if (row == ELEMENTSOF(sequences) || sequences[row].length > left)
                return 0;
        if (sequences[row].length > 1 &&
            (byte[1] < sequences[row].second_min || byte[1] > sequences[row].second_max))
                return 0;
        for (size_t i = 2; i < sequences[row].length; i++)
                if ((byte[i] & 0xc0) != 0x80)
                        return 0;
        return sequences[row].length;
}

size_t utf8_unfinished(const char *data, size_t length) {
        for (size_t back = 1; back <= 3 && back <= length; back++) {
                unsigned char c = (unsigned char)data[length - back];
                size_t needed = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;

                if (c < 0x80)
                        return 0;
                if (c >= 0xc0)
                        return needed > back ? back : 0;
        }
        return 0;
}

bool utf8_valid(const char *s) {
        size_t left = strlen(s), sequence = 1;

        for (; left > 0 && sequence > 0; s += sequence, left -= sequence)
                sequence = utf8_sequence(s, left);
        return left == 0;
}
