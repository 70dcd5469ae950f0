/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/uri.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static int uri_digit(char c) {
        const char *const digits = "0123456789abcdef", *at = strchr(digits, c | 0x20);

        return c && at ? (int)(at - digits) : -1;
}

/* Returns the byte that "%XX" stands for, or 0 if the text is something else. */
static int uri_byte(const char *text) {
        const int high = uri_digit(text[1]), low = high < 0 ? -1 : uri_digit(text[2]);

        return low < 0 ? 0 : high * 16 + low;
}

char *uri_decode(const char *text) {
        char *const path = malloc(strlen(text) + 1), *p = path;
        int byte = 1;

        if (!path)
                return NULL;
        while (*text && byte != 0) {
                byte = *text == '%' ? uri_byte(text) : (unsigned char)*text;
                text += *text == '%' && byte != 0 ? 3 : 1;
                *p++ = (char)byte;
        }
        *p = '\0';
        if (byte != 0 && utf8_valid(path))
                return path;
        free(path);
        return NULL;
}
