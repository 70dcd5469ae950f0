/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/scrub.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/strings.h"
#include "base/util.h"

/* Takes ownership of the pattern. */
static int scrub_take(Scrub *scrub, char *pattern) {
        if (!pattern)
                return -ENOMEM;
        if (strlen(pattern) < SCRUB_LEAST || scrub->count == SCRUB_PATTERNS) {
                free(pattern);
                return 0;
        }
        if (strlen(pattern) > scrub->held_size) {
                char *held = realloc(scrub->held, strlen(pattern));

                if (!held) {
                        free(pattern);
                        return -ENOMEM;
                }
                scrub->held = held;
                scrub->held_size = strlen(pattern);
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
        char *whole = str_format("%s%s", "xx" + (2 - before), text);
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

/* Longer forms come first, because a masked part of one is not found again. */
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
        return r == 0 ? scrub_take_new(scrub, scrub_json(secret)) : r;
}

static void scrub_mask(const Scrub *scrub, char *data, size_t length) {
        for (size_t i = 0; i < scrub->count; i++) {
                const size_t size = strlen(scrub->patterns[i]);
                char *found = data;

                while ((found = memmem(found, (size_t)(data + length - found), scrub->patterns[i],
                                       size)))
                        memset(found, '*', size);
        }
}

/* Returns how many bytes at the end are the beginning of a pattern. */
static size_t scrub_partial(const Scrub *scrub, const char *data, size_t length) {
        size_t most = 0;

        for (size_t i = 0; i < scrub->count; i++) {
                size_t n = strlen(scrub->patterns[i]) - 1;

                for (n = n < length ? n : length; n > most; n--)
                        if (memcmp(data + length - n, scrub->patterns[i], n) == 0)
                                most = n;
        }
        return most;
}

int scrub_feed(Scrub *scrub, const char *data, size_t length, bool last, Buffer *ret) {
        const size_t before = ret->length;
        size_t added, partial;
        char *new;
        int r = pipe_buffer_add(ret, scrub->held, scrub->held_length);

        if (r == 0)
                r = pipe_buffer_add(ret, data, length);
        scrub->held_length = 0;
        added = ret->length - before;
        if (r < 0 || scrub->count == 0 || added == 0)
                return r;
        new = ret->data + ret->start + before;
        scrub_mask(scrub, new, added);
        partial = last ? 0 : scrub_partial(scrub, new, added);
        memcpy(scrub->held, new + added - partial, partial);
        scrub->held_length = partial;
        ret->length -= partial;
        return 0;
}

void scrub_text(const Scrub *scrub, char *text) {
        scrub_mask(scrub, text, strlen(text));
}

void scrub_clear(Scrub *scrub) {
        for (size_t i = 0; i < scrub->count; i++) {
                explicit_bzero(scrub->patterns[i], strlen(scrub->patterns[i]));
                free(scrub->patterns[i]);
        }
        free(scrub->held);
        *scrub = (Scrub){ 0 };
}
