/* SPDX-License-Identifier: Apache-2.0 */
#include "strings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "base/util.h"

void strlist_clear(StrList *list) {
        for (size_t i = 0; i < list->count; i++)
                free(list->items[i]);
        free(list->items);
        *list = (StrList){ 0 };
}

int strlist_take(StrList *list, char *item) {
        char **items;

        if (!item)
                return -ENOMEM;
        items = reallocarray(list->items, list->count + 2, sizeof(*items));
        if (!items) {
                free(item);
                return -ENOMEM;
        }
        items[list->count++] = item;
        items[list->count] = NULL;
        list->items = items;
        return 0;
}

int strlist_add(StrList *list, const char *item) {
        return strlist_take(list, strdup(item));
}

bool strlist_same(const StrList *a, const StrList *b) {
        if (a->count != b->count)
                return false;
        for (size_t i = 0; i < a->count; i++)
                if (!streq(a->items[i], b->items[i]))
                        return false;
        return true;
}

bool strlist_has(const StrList *list, const char *item) {
        for (size_t i = 0; i < list->count; i++)
                if (streq(list->items[i], item))
                        return true;
        return false;
}

bool str_starts(const char *s, const char *prefix) {
        return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* vasprintf(3) of musl formats each text twice, first to find its length. Most texts are short. */
char *str_vformat(const char *fmt, va_list args) {
        _uninitialized_ char text[256];
        char *s = NULL;
        va_list again;
        int length;

        va_copy(again, args);
        length = vsnprintf(text, sizeof(text), fmt, args);
        if (length >= (int)sizeof(text) && vasprintf(&s, fmt, again) < 0)
                s = NULL;
        else if (length >= 0 && length < (int)sizeof(text))
                s = strndup(text, (size_t)length);
        va_end(again);
        return s;
}

char *str_format(const char *fmt, ...) {
        va_list args;
        char *s;

        va_start(args, fmt);
        s = str_vformat(fmt, args);
        va_end(args);
        return s;
}

/* Characters that make a text look different from its contents (CVE-2021-42574). Some are
 * invisible, some look like a plain blank, and some reverse the direction of their neighbours. The
 * list is Unicode's Default_Ignorable_Code_Point, with blanks, separators, and Braille without a
 * dot. It also has the C1 controls (up to U+009F), which start escape sequences in some
 * terminals. */
static bool str_is_hidden(uint32_t c) {
        static const struct {
                uint32_t first, last;
        } hidden[] = {
                { 0x80, 0xa0 },       { 0xad, 0xad },       { 0x34f, 0x34f },
                { 0x61c, 0x61c },     { 0x115f, 0x1160 },   { 0x1680, 0x1680 },
                { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },   { 0x2000, 0x200f },
                { 0x2028, 0x202f },   { 0x205f, 0x206f },   { 0x2800, 0x2800 },
                { 0x3000, 0x3000 },   { 0x3164, 0x3164 },   { 0xfe00, 0xfe0f },
                { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },   { 0xfff0, 0xfffb },
                { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
        };

        for (size_t i = 0; i < ELEMENTSOF(hidden) && c >= hidden[i].first; i++)
                if (c <= hidden[i].last)
                        return true;
        return false;
}

/* Decodes a well-formed sequence of 2 to 4 bytes. */
static uint32_t str_decode(const unsigned char *s, size_t length) {
        uint32_t c = s[0] & (0xffU >> (length + 1));

        for (size_t i = 1; i < length; i++)
                c = c << 6 | (s[i] & 0x3fU);
        return c;
}

/* Length of the character at s that a terminal may receive unchanged, 1 to 4 bytes; 0 if it must be
 * escaped. */
static size_t printable_length(const char *text, size_t left, const char *escaped) {
        const unsigned char *s = (const unsigned char *)text;
        size_t length;

        if (s[0] < 0x80)
                return s[0] >= 0x20 && s[0] != 0x7f && !strchr(escaped, s[0]);
        length = utf8_sequence(text, left);
        return length == 0 || str_is_hidden(str_decode(s, length)) ? 0 : length;
}

static const char *str_escape(const char *s, const char *escaped, char *buf, size_t size) {
        size_t left = strlen(s), n = 0;

        while (left > 0) {
                size_t length = printable_length(s, left, escaped), taken = length ? length : 1;

                if (n + (length ? length : 4) + 4 > size) {
                        (void)snprintf(buf + n, size - n, "...");
                        return buf;
                }
                if (length)
                        memcpy(buf + n, s, length);
                else
                        (void)snprintf(buf + n, size - n, "\\x%02x", (unsigned char)*s);
                n += length ? length : 4;
                s += taken;
                left -= taken;
        }
        buf[n] = '\0';
        return buf;
}

const char *str_quote(const char *s, char *buf, size_t size) {
        return str_escape(s, "\"\\", buf, size);
}

const char *str_visible(const char *s, char *buf, size_t size) {
        return str_escape(s, "", buf, size);
}

/* Whether every shell takes all characters of s literally, at any position in a word. */
static bool str_is_plain(const char *s) {
        static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                    "%+,-./:@_";

        return *s && s[strspn(s, plain)] == '\0';
}

char *str_word(const char *s) {
        /* A quote in s is written as '\'': it ends the quoted part, follows a backslash, and starts
         * the next part. A word with a backslash is refused, because in fish a backslash counts
         * even inside quotes. */
        const size_t size = strlen(s);
        char *word = malloc(4 * size + 3), *out = word;

        for (size_t left = size, length; left > 0; left -= length) {
                length = printable_length(s + size - left, left, "\\");
                if (length == 0) {
                        free(word);
                        return NULL;
                }
        }
        if (!word || str_is_plain(s))
                return word ? strcpy(word, s) : NULL;
        *out++ = '\'';
        for (; *s; s++)
                if (*s == '\'')
                        out = stpcpy(out, "'\\''");
                else
                        *out++ = *s;
        (void)stpcpy(out, "'");
        return word;
}

typedef struct Unit {
        const char *name;
        uint64_t factor;
} Unit;

static const Unit duration_units[] = {
        { "", 1000000 },         { "us", 1 },          { "ms", 1000 },
        { "s", 1000000 },        { "m", 60000000ULL }, { "h", 3600000000ULL },
        { "d", 86400000000ULL }, { NULL, 0 },
};

static const Unit byte_units[] = {
        { "", 1 },
        { "B", 1 },
        { "k", 1ULL << 10 },
        { "m", 1ULL << 20 },
        { "g", 1ULL << 30 },
        { "t", 1ULL << 40 },
        { "K", 1ULL << 10 },
        { "M", 1ULL << 20 },
        { "G", 1ULL << 30 },
        { "T", 1ULL << 40 },
        { "Ki", 1ULL << 10 },
        { "Mi", 1ULL << 20 },
        { "Gi", 1ULL << 30 },
        { "Ti", 1ULL << 40 },
        { "KiB", 1ULL << 10 },
        { "MiB", 1ULL << 20 },
        { "GiB", 1ULL << 30 },
        { "TiB", 1ULL << 40 },
        { "kB", 1000 },
        { "KB", 1000 },
        { "MB", 1000000 },
        { "GB", 1000000000 },
        { "TB", 1000000000000 },
        { NULL, 0 },
};

int str_to_uint(const char *s, uint64_t max, uint64_t *ret) {
        uint64_t value = 0;

        if (!isdigit((unsigned char)*s))
                return -EINVAL;
        for (; *s; s++) {
                if (!isdigit((unsigned char)*s))
                        return -EINVAL;
                if (__builtin_mul_overflow(value, 10U, &value) ||
                    __builtin_add_overflow(value, (uint64_t)(*s - '0'), &value))
                        return -ERANGE;
        }
        if (value > max)
                return -ERANGE;
        *ret = value;
        return 0;
}

/* Parses NUMBER[.FRACTION]UNIT. A fraction has at most six digits, the precision of a microsecond.
 */
static int parse_with_unit(const char *s, const Unit *units, uint64_t max, uint64_t *ret) {
        uint64_t whole = 0, fraction = 0, scale = 1, part;

        if (!isdigit((unsigned char)*s))
                return -EINVAL;
        for (; isdigit((unsigned char)*s); s++)
                if (__builtin_mul_overflow(whole, 10U, &whole) ||
                    __builtin_add_overflow(whole, (uint64_t)(*s - '0'), &whole))
                        return -ERANGE;
        if (*s == '.') {
                for (s++; isdigit((unsigned char)*s) && scale < 1000000; s++, scale *= 10)
                        fraction = fraction * 10 + (uint64_t)(*s - '0');
                if (scale == 1)
                        return -EINVAL;
        }
        for (; units->name; units++)
                if (streq(units->name, s))
                        break;
        if (!units->name)
                return -EINVAL;
        if (__builtin_mul_overflow(whole, units->factor, &whole) ||
            __builtin_mul_overflow(fraction, units->factor, &part) ||
            __builtin_add_overflow(whole, part / scale, &whole) || whole > max)
                return -ERANGE;
        *ret = whole;
        return 0;
}

int str_to_usec(const char *s, uint64_t *ret_usec) {
        return parse_with_unit(s, duration_units, 1000 * 86400000000ULL, ret_usec);
}

int str_to_bytes(const char *s, uint64_t *ret_bytes) {
        return parse_with_unit(s, byte_units, 1ULL << 60, ret_bytes);
}

char *str_shell_word(const char *s) {
        const size_t size = 4 * strlen(s) + sizeof("...");
        _cleanup_free_ char *quoted = NULL;
        char *word = str_word(s);

        if (word)
                return word;
        quoted = malloc(size);
        return quoted ? str_format("$'%s'", str_quote(s, quoted, size)) : NULL;
}
