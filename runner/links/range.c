/* SPDX-License-Identifier: Apache-2.0 */
#include "links/range.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/strings.h"

/* Reads the digits at *at. A number that is too large becomes the largest one. Returns false if
 * there is no digit. */
static bool range_number(const char **at, uint64_t *ret) {
        const size_t length = strspn(*at, "0123456789");
        char digits[24];

        if (length == 0)
                return false;
        *ret = UINT64_MAX;
        if (length < sizeof(digits)) {
                memcpy(digits, *at, length);
                digits[length] = '\0';
                if (str_to_uint(digits, UINT64_MAX, ret) < 0)
                        *ret = UINT64_MAX;
        }
        *at += length;
        return true;
}

int range_read(const char *text, size_t length, uint64_t size, uint64_t *ret_start,
               uint64_t *ret_length) {
        char copy[64];
        const char *at = copy + 6;
        uint64_t first = 0, last = UINT64_MAX;
        bool has_first, has_last;

        if (length < 7 || length >= sizeof(copy))
                return 0;
        memcpy(copy, text, length);
        copy[length] = '\0';
        if (strncasecmp(copy, "bytes=", 6) != 0)
                return 0;
        has_first = range_number(&at, &first);
        if (*at++ != '-')
                return 0;
        has_last = range_number(&at, &last);
        if (*at || strlen(copy) != length || (!has_first && !has_last) ||
            (has_first && has_last && last < first))
                return 0;
        if (!has_first) {
                if (last == 0 || size == 0)
                        return -ERANGE;
                first = last < size ? size - last : 0;
                last = UINT64_MAX;
        }
        if (first >= size)
                return -ERANGE;
        if (last >= size)
                last = size - 1;
        *ret_start = first;
        *ret_length = last - first + 1;
        return 1;
}
