/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of strings, formatting onto the heap, quoting of untrusted text, numbers with units. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A growing list of owned strings; items[count] is always NULL once anything was added. */
typedef struct StrList {
        char **items;
        size_t count;
} StrList;

void strlist_clear(StrList *list);
/* 0 or -ENOMEM; the string is copied. */
int strlist_add(StrList *list, const char *item);
/* 0 or -ENOMEM; takes item in every case (frees it on failure, and NULL counts as a failure). */
int strlist_take(StrList *list, char *item);
bool strlist_has(const StrList *list, const char *item);

static inline bool streq(const char *a, const char *b) {
        return __builtin_strcmp(a, b) == 0;
}
bool str_starts(const char *s, const char *prefix);

/* printf onto the heap; NULL when memory is out. */
char *str_format(const char *fmt, ...) _printf_(1, 2);
char *str_vformat(const char *fmt, va_list args) _printf_(1, 0);

/* Writes s into buf with control bytes, what shows nothing of itself, looks like a blank or turns
 * the text's direction, quotes, backslashes and non-UTF-8 as \xNN, cut with "..." when it does not
 * fit; always ends in NUL. Returns buf. For any text that a person will see and somebody else
 * wrote. */
const char *str_quote(const char *s, char *buf, size_t size);

/* The same, but quotes and backslashes stay: for a sentence that has such text in it. */
const char *str_visible(const char *s, char *buf, size_t size);

/* s as one word of a shell's, in single quotes where it needs them: for a command line that
 * somebody may paste. Owned by the caller; NULL where s has in it what str_visible() would escape,
 * since nobody would see what is pasted, or a backslash, which shells read in different ways, or
 * memory is out. */
char *str_word(const char *s);

/* "250ms", "30s", "10m", "2h", "1d", or a bare number of seconds ("1.5" is legal) -> microseconds.
 * 0, -EINVAL (not a duration) or -ERANGE (past 1000 days). */
int str_to_usec(const char *s, uint64_t *ret_usec);

/* "4096", "64KiB", "512M", "2Gi", "1t", "1GB" (decimal) -> bytes. 0, -EINVAL or -ERANGE (past
 * 2^60). */
int str_to_bytes(const char *s, uint64_t *ret_bytes);

/* Decimal only, no sign, no blank. 0, -EINVAL or -ERANGE. */
int str_to_uint(const char *s, uint64_t max, uint64_t *ret);
