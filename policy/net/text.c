/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/net/text.h"

#include <stddef.h>

#include "base/util.h"

/* Ranges of UTF-8 sequences that differ only in their last byte. */
static const struct {
        unsigned char before[2]; /* One or two bytes; 0 if there is only one. */
        unsigned char first, last;
} text_odd[] = {
        { { 0xc2, 0 }, 0x80, 0x9f },    /* C1: U+009B begins an escape sequence, as ESC [ does. */
        { { 0xd8, 0 }, 0x9c, 0x9c },    /* Arabic letter mark. */
        { { 0xe2, 0x80 }, 0x8e, 0x8f }, /* Marks of direction. */
        { { 0xe2, 0x80 }, 0xa8, 0xae }, /* Line and paragraph separators, and directions. */
        { { 0xe2, 0x81 }, 0xa6, 0xa9 }, /* Directions. */
};

/* Whether an odd character begins here. Stops at the NUL that ends the text, because no odd
 * character contains a NUL. */
static bool text_is_odd(const unsigned char *at) {
        for (size_t i = 0; i < ELEMENTSOF(text_odd); i++) {
                const unsigned char *rest = at + 1, second = text_odd[i].before[1];

                if (*at != text_odd[i].before[0] || (second && *rest++ != second))
                        continue;
                if (*rest >= text_odd[i].first && *rest <= text_odd[i].last)
                        return true;
        }
        return false;
}

bool net_text_plain(const char *text) {
        for (const unsigned char *at = (const unsigned char *)text; *at; at++)
                if (*at < ' ' || *at == 0x7f || text_is_odd(at))
                        return false;
        return true;
}
