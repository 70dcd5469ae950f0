/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/plain.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

void plain_copy_url(char *ret, size_t size, const char *text, size_t length) {
        size_t at = 0;

        for (size_t i = 0; i < length && at + 4 <= size; i++)
                at += (size_t)snprintf(ret + at, size - at,
                                       text[i] >= 0x20 && text[i] < 0x7f ? "%c" : "%%%02X",
                                       (unsigned char)text[i]);
        ret[at] = '\0';
}

/* Whether the character of this length is a control character: U+0000 to U+001F, and U+007F to
 * U+009F, which begin with 0xc2 in UTF-8. */
static bool plain_is_control(const char *text, size_t length) {
        const unsigned char first = (unsigned char)text[0];

        return length == 1 ? first < 0x20 || first == 0x7f
                           : first == 0xc2 && (unsigned char)text[1] < 0xa0;
}

void plain_copy_text(char *ret, size_t size, const char *text) {
        size_t at = 0, left = strlen(text);

        while (left > 0) {
                const size_t found = utf8_sequence(text, left), length = found ? found : 1;

                if (at + length >= size)
                        break;
                if (!found || plain_is_control(text, length))
                        ret[at++] = ' ';
                else {
                        memcpy(ret + at, text, length);
                        at += length;
                }
                text += length;
                left -= length;
        }
        ret[at] = '\0';
}
