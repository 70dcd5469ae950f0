/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *data, size_t length) {
        const unsigned char *bytes = data;
        char *text = malloc((length + 2) / 3 * 4 + 1), *at = text;

        for (size_t i = 0; text && i < length; i += 3) {
                uint32_t three = (uint32_t)bytes[i] << 16;

                if (i + 1 < length)
                        three |= (uint32_t)bytes[i + 1] << 8;
                if (i + 2 < length)
                        three |= bytes[i + 2];
                at[0] = digits[three >> 18];
                at[1] = digits[three >> 12 & 63];
                at[2] = at[3] = '=';
                if (i + 1 < length)
                        at[2] = digits[three >> 6 & 63];
                if (i + 2 < length)
                        at[3] = digits[three & 63];
                at += 4;
        }
        if (at)
                *at = '\0';
        return text;
}

/* Fills in each digit's value plus 1. Every other byte stays 0. */
static void fill_values(unsigned char values[256]) {
        memset(values, 0, 256);
        for (unsigned char i = 0; i < 64; i++)
                values[(unsigned char)digits[i]] = (unsigned char)(i + 1);
}

/* Decodes four digits into three bytes, or into fewer if `missing` digits are padding. */
static int decode_four(const unsigned char values[256], const char *text, size_t missing,
                       unsigned char *at) {
        uint32_t three = 0;

        for (size_t i = 0; i < 4; i++) {
                unsigned value = i < 4 - missing ? values[(unsigned char)text[i]] : 1;

                if (value == 0)
                        return -EINVAL;
                three = three << 6 | (value - 1);
        }
        if (missing > 0 && three & ((1U << 8 * missing) - 1))
                return -EINVAL;
        for (size_t i = 0; i < 3 - missing; i++)
                at[i] = (unsigned char)(three >> (16 - 8 * i));
        return 0;
}

int base64_decode(const char *text, char **ret, size_t *ret_length) {
        const size_t length = strlen(text);
        _cleanup_free_ char *data = NULL;
        unsigned char values[256];
        size_t padding = 0, done = 0;

        if (length % 4 != 0)
                return -EINVAL;
        while (padding < 2 && length > padding && text[length - padding - 1] == '=')
                padding++;
        data = malloc(length / 4 * 3 + 1);
        if (!data)
                return -ENOMEM;
        fill_values(values);
        for (size_t i = 0; i < length; i += 4) {
                size_t missing = i + 4 == length ? padding : 0;

                if (decode_four(values, text + i, missing, (unsigned char *)data + done) < 0)
                        return -EINVAL;
                done += 3 - missing;
        }
        data[done] = '\0';
        *ret = TAKE_PTR(data);
        *ret_length = done;
        return 0;
}
