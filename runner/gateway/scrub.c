/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/scrub.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/strings.h"
#include "base/util.h"

/* --- the index --- */

/* Theory of operation. A pattern has at least `shortest` bytes. So of four bytes in every
 * shortest - 3 of the text, one group lies within the beginning of a pattern that is there. The
 * search reads only these groups. The index knows all groups in the beginnings of all patterns. */

static size_t scrub_hash(const char *group) {
        uint32_t bytes;

        memcpy(&bytes, group, SCRUB_GROUP);
        return (bytes * 2654435761U) >> 16;
}

static bool scrub_knows(const Scrub *scrub, const char *group) {
        const size_t hash = scrub_hash(group);

        return scrub->groups[hash / 8] & (1U << (hash % 8));
}

static void scrub_index(Scrub *scrub) {
        scrub->shortest = scrub->count ? strlen(scrub->patterns[0]) : SCRUB_LEAST;
        for (size_t i = 1; i < scrub->count; i++) {
                const size_t size = strlen(scrub->patterns[i]);

                scrub->shortest = size < scrub->shortest ? size : scrub->shortest;
        }
        memset(scrub->groups, 0, sizeof(scrub->groups));
        for (size_t i = 0; i < scrub->count; i++)
                for (size_t at = 0; at + SCRUB_GROUP <= scrub->shortest; at++) {
                        const size_t hash = scrub_hash(scrub->patterns[i] + at);

                        scrub->groups[hash / 8] |= (uint8_t)(1U << (hash % 8));
                }
}

/* --- patterns --- */

/* Makes room for a piece of this size that is held back. */
static int scrub_grow(Scrub *scrub, size_t size) {
        char *held = size > scrub->held_size ? realloc(scrub->held, size) : scrub->held;
        bool *marks;

        if (size <= scrub->held_size)
                return 0;
        if (!held)
                return -ENOMEM;
        scrub->held = held;
        marks = realloc(scrub->held_marks, size * sizeof(*marks));
        if (!marks)
                return -ENOMEM;
        scrub->held_marks = marks;
        scrub->held_size = size;
        return 0;
}

/* Takes ownership of the pattern. */
static int scrub_take(Scrub *scrub, char *pattern) {
        if (!pattern)
                return -ENOMEM;
        if (strlen(pattern) < SCRUB_LEAST || scrub->count == SCRUB_PATTERNS) {
                free(pattern);
                return 0;
        }
        if (scrub_grow(scrub, strlen(pattern)) < 0) {
                free(pattern);
                return -ENOMEM;
        }
        scrub->patterns[scrub->count++] = pattern;
        return 0;
}

/* Replaces the characters of base64 that have another meaning in a URL. Takes ownership. */
static char *scrub_url_safe(char *coded) {
        for (char *c = coded; c && *c; c++)
                *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
        return coded;
}

/* Returns the characters of base64 that only the text decides, if `before` bytes of another text
 * come before it, and others may follow. */
static char *scrub_inner(const char *text, size_t before) {
        static const size_t first[] = { 0, 2, 3 }, last[] = { 0, 3, 2 };
        const size_t length = strlen(text);
        char *whole = str_format("%s%s", &"xx"[2 - before], text);
        char *coded = whole ? base64_encode(whole, strlen(whole)) : NULL, *inner = NULL;
        const size_t cut = first[before] + last[(before + length) % 3];

        if (coded && strlen(coded) >= cut)
                inner = strndup(coded + first[before], strlen(coded) - cut);
        if (whole)
                explicit_bzero(whole, strlen(whole));
        if (coded)
                explicit_bzero(coded, strlen(coded));
        free(whole);
        free(coded);
        return inner;
}

/* Returns the form of a query in a URL, in which other characters are "%XX". */
static char *scrub_escaped(const char *text) {
        char *all = malloc(strlen(text) * 3 + 1), *to = all;

        if (all)
                *all = '\0';
        for (; all && *text; text++) {
                const unsigned char c = (unsigned char)*text;
                const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                                   (c >= 'a' && c <= 'z') || strchr("-._~", c);

                to += snprintf(to, 4, plain ? "%c" : "%%%02X", c);
        }
        return all;
}

/* Returns the form that some programs write in JSON, in which "/" is "\/". */
static char *scrub_json(const char *text) {
        char *all = malloc(strlen(text) * 2 + 1), *to = all;

        for (; all && *text; text++) {
                if (strchr("/\\\"", *text))
                        *to++ = '\\';
                *to++ = *text;
        }
        if (all)
                *to = '\0';
        return all;
}

/* Takes ownership of the pattern, and leaves one out that is there. */
static int scrub_take_new(Scrub *scrub, char *pattern) {
        for (size_t i = 0; pattern && i < scrub->count; i++)
                if (streq(scrub->patterns[i], pattern)) {
                        explicit_bzero(pattern, strlen(pattern));
                        free(pattern);
                        return 0;
                }
        return scrub_take(scrub, pattern);
}

int scrub_add(Scrub *scrub, const char *secret) {
        int r = scrub_take_new(scrub, strdup(secret));

        if (r == 0)
                r = scrub_take_new(scrub, base64_encode(secret, strlen(secret)));
        if (r == 0)
                r = scrub_take_new(scrub, scrub_url_safe(base64_encode(secret, strlen(secret))));
        for (size_t before = 0; r == 0 && before < 3; before++) {
                r = scrub_take_new(scrub, scrub_inner(secret, before));
                if (r == 0)
                        r = scrub_take_new(scrub, scrub_url_safe(scrub_inner(secret, before)));
        }
        if (r == 0)
                r = scrub_take_new(scrub, scrub_escaped(secret));
        if (r == 0)
                r = scrub_take_new(scrub, scrub_json(secret));
        scrub_index(scrub);
        return r;
}

/* --- marks --- */

typedef struct Marks {
        bool *bytes; /* Which bytes will be asterisks. NULL until a pattern is found. */
        size_t end;  /* Behind the last of them that the search has marked. */
} Marks;

/* Marks the patterns that begin at this byte. */
static int scrub_mark_at(const Scrub *scrub, const char *data, size_t length, size_t at,
                         Marks *marks) {
        for (size_t i = 0; i < scrub->count; i++) {
                const char *pattern = scrub->patterns[i];
                const size_t size = *pattern == data[at] ? strlen(pattern) : SIZE_MAX;
                const size_t from = marks->end > at ? marks->end : at;

                if (size > length - at || memcmp(data + at, pattern, size) != 0)
                        continue;
                if (!marks->bytes)
                        marks->bytes = calloc(length, sizeof(*marks->bytes));
                if (!marks->bytes)
                        return -ENOMEM;
                if (at + size <= from)
                        continue;
                memset(marks->bytes + from, true, at + size - from);
                marks->end = at + size;
        }
        return 0;
}

/* Marks all bytes of all patterns, which may overlap. Only then are bytes replaced: a pattern of
 * which a part was replaced would not be found. *bytes is NULL until the first pattern is found.
 * Returns 0 or -ENOMEM. */
static int scrub_mark(const Scrub *scrub, const char *data, size_t length, bool **bytes) {
        const size_t stride = scrub->shortest - SCRUB_GROUP + 1;
        Marks marks = { .bytes = *bytes };
        int r = 0;

        for (size_t at = 0; r == 0 && scrub->count && at + scrub->shortest <= length;
             at += stride) {
                if (!scrub_knows(scrub, data + at + stride - 1))
                        continue;
                for (size_t i = at; r == 0 && i < at + stride; i++)
                        if (scrub_knows(scrub, data + i))
                                r = scrub_mark_at(scrub, data, length, i, &marks);
        }
        *bytes = marks.bytes;
        return r;
}

static void scrub_replace(char *data, size_t length, const bool *marks) {
        for (size_t i = 0; marks && i < length; i++)
                if (marks[i])
                        data[i] = '*';
}

/* Returns how many bytes at the end are the beginning of a pattern. */
static size_t scrub_partial(const Scrub *scrub, const char *data, size_t length) {
        size_t most = 0;

        for (size_t i = 0; i < scrub->count; i++) {
                size_t n = strlen(scrub->patterns[i]) - 1;

                for (n = n < length ? n : length; n > most; n--)
                        if (scrub->patterns[i][n - 1] == data[length - 1] &&
                            memcmp(data + length - n, scrub->patterns[i], n) == 0)
                                most = n;
        }
        return most;
}

/* Makes the marks of a new piece, which begins with what was held back. */
static int scrub_take_marks(Scrub *scrub, const char *data, size_t length, bool **marks) {
        bool any = false;

        for (size_t i = 0; i < scrub->held_length; i++)
                any |= scrub->held_marks[i];
        if (any) {
                *marks = calloc(length, sizeof(**marks));
                if (!*marks)
                        return -ENOMEM;
                memcpy(*marks, scrub->held_marks, scrub->held_length * sizeof(**marks));
        }
        return scrub_mark(scrub, data, length, marks);
}

/* Holds the last bytes back. */
static void scrub_hold(Scrub *scrub, const char *end, const bool *marks_end, size_t size) {
        if (size > 0) {
                memcpy(scrub->held, end - size, size);
                memset(scrub->held_marks, 0, size * sizeof(*scrub->held_marks));
        }
        if (size > 0 && marks_end)
                memcpy(scrub->held_marks, marks_end - size, size * sizeof(*scrub->held_marks));
        scrub->held_length = size;
}

int scrub_feed(Scrub *scrub, const char *data, size_t length, bool last, Buffer *ret) {
        const size_t before = ret->length;
        _cleanup_free_ bool *marks = NULL;
        size_t added, partial;
        char *new;
        int r = pipe_buffer_add(ret, scrub->held, scrub->held_length);

        if (r == 0)
                r = pipe_buffer_add(ret, data, length);
        added = ret->length - before;
        if (r < 0 || scrub->count == 0 || added == 0)
                return r;
        new = ret->data + ret->start + before;
        r = scrub_take_marks(scrub, new, added, &marks);
        if (r < 0)
                return r;
        partial = last ? 0 : scrub_partial(scrub, new, added);
        scrub_hold(scrub, new + added, marks ? marks + added : NULL, partial);
        ret->length -= partial;
        scrub_replace(new, added - partial, marks);
        return 0;
}

void scrub_text(const Scrub *scrub, char *text) {
        const size_t length = strlen(text);
        _cleanup_free_ bool *marks = NULL;

        if (scrub_mark(scrub, text, length, &marks) < 0)
                memset(text, '*', length);
        else
                scrub_replace(text, length, marks);
}

void scrub_clear(Scrub *scrub) {
        for (size_t i = 0; i < scrub->count; i++) {
                explicit_bzero(scrub->patterns[i], strlen(scrub->patterns[i]));
                free(scrub->patterns[i]);
        }
        if (scrub->held)
                explicit_bzero(scrub->held, scrub->held_length);
        free(scrub->held);
        free(scrub->held_marks);
        *scrub = (Scrub){ 0 };
}
