/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of strings, formatting onto the heap, quoting of untrusted text, numbers with units. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A growing list of owned strings. After the first addition, items[count] is always NULL. */
typedef struct StrList {
        char **items;
        size_t count;
} StrList;

void strlist_clear(StrList *list);
/* Copies the string. Returns 0 or -ENOMEM. */
int strlist_add(StrList *list, const char *item);
/* Takes ownership of item, also on failure. Returns 0 or -ENOMEM; a NULL item gives -ENOMEM. */
int strlist_take(StrList *list, char *item);
bool strlist_has(const StrList *list, const char *item);
/* Whether both have the same items in the same order. */
bool strlist_same(const StrList *a, const StrList *b);

static inline bool streq(const char *a, const char *b) {
        return __builtin_strcmp(a, b) == 0;
}
bool str_starts(const char *s, const char *prefix);

/* printf onto the heap; NULL if memory is out. */
char *str_format(const char *fmt, ...) _printf_(1, 2);
char *str_vformat(const char *fmt, va_list args) _printf_(1, 0);

/* Writes s into buf for people to read; use it for any text that somebody else wrote. Control
 * bytes, quotes, backslashes and bytes that are not UTF-8 become \xNN. So do characters that are
 * invisible, look like a blank, or change the text's direction. Text that does not fit is cut with
 * "...". The result always ends in NUL. Returns buf. */
const char *str_quote(const char *s, char *buf, size_t size);

/* The same, except that quotes and backslashes stay. It is meant for a sentence that contains such
 * text. */
const char *str_visible(const char *s, char *buf, size_t size);

/* Quotes s as one word of a shell, if necessary in single quotes, so that people can paste a
 * command line. Owned by the caller. NULL if memory is out, or if s cannot be quoted safely. That
 * is the case if str_visible() would escape a part of it, because people could not see what they
 * paste. It is also the case for a backslash, which shells read in different ways. */
char *str_word(const char *s);

/* Quotes every s. If str_word() returns NULL for it, the result has bash's form $'...', with \xNN
 * for bytes that people could not see. NULL only if memory is out. */
char *str_shell_word(const char *s);

/* Converts "250ms", "30s", "10m", "2h", "1d" or a bare number of seconds (such as "1.5") to
 * microseconds. Returns 0, -EINVAL (not a duration) or -ERANGE (above 1000 days). */
int str_to_usec(const char *s, uint64_t *ret_usec);
/* A regular expression (ECMA-262) for the texts that str_to_usec() accepts. It does not check the
 * maximum. */
#define DURATION_PATTERN "[0-9]+(\\.[0-9]{1,6})?(us|ms|s|m|h|d)?"

/* Converts "4096", "64KiB", "512M", "2Gi", "1t" or "1GB" (decimal) to bytes. Returns 0, -EINVAL or
 * -ERANGE (above 2^60). */
int str_to_bytes(const char *s, uint64_t *ret_bytes);
/* The same as DURATION_PATTERN, for str_to_bytes(). */
#define BYTES_PATTERN "[0-9]+(\\.[0-9]{1,6})?(B|[KMGT](iB?|B)?|[kmgt]|kB)?"

/* Only decimal digits; no sign, no blank. Returns 0, -EINVAL or -ERANGE. */
int str_to_uint(const char *s, uint64_t max, uint64_t *ret);
